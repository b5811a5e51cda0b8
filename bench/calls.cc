#include "bench/calls.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <list>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "bench/floors.h"
#include "bench/memory.h"

namespace pyplaypen::bench {
namespace {

using std::chrono::milliseconds;

struct Snippet {
  std::string name;
  std::string code;
};

std::vector<Snippet> read_snippets(const std::filesystem::path& directory) {
  std::vector<Snippet> snippets;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".py") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    snippets.push_back({entry.path().stem(), text.str()});
  }
  std::ranges::sort(snippets, {}, &Snippet::name);
  if (snippets.empty()) throw std::runtime_error("no snippets in " + directory.string());
  return snippets;
}

double call_time(Sandbox& sandbox, std::string_view code, milliseconds pause, const Limits& limits = {},
                 std::vector<StageTimes>* stages = nullptr) {
  std::this_thread::sleep_for(pause);
  const auto begin = Clock::now();
  const Result result = sandbox.execute(code, {}, limits);
  const double time = microseconds_since(begin);
  value_of(result);
  if (stages != nullptr) stages->push_back(result.stages);
  return time;
}

constexpr char kNumpy[] =
    "import numpy as np\n"
    "a = np.arange(12.0).reshape(3, 4)\n"
    "b = a @ a.T + np.eye(3)\n"
    "[float(b.sum()), (a > 5).sum().item(), np.sort(a[:, 1])[::-1].tolist()]\n";
constexpr char kPandas[] =
    "import pandas as pd\n"
    "d = pd.DataFrame({'city': ['Rome', 'Oslo', 'Rome', 'Bern'], 'n': [3, 1, 4, 1]})\n"
    "d.groupby('city')['n'].sum().to_dict()\n";

// Whether a Sandbox with this module preloaded can be made; if not, why.
std::string missing(Sandboxes& sandboxes, const std::string& module) {
  try {
    sandboxes.with_preload(module, 2);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

void add_preload(Plan& plan, const Mode& mode, Sandboxes& sandboxes, const std::string& module,
                 const char* code, milliseconds pause) {
  const std::string name = "call/" + module;
  if (const std::string why = missing(sandboxes, module); !why.empty()) {
    plan.skipped[name] = why;
    return;
  }
  const int per_round = mode.scaled(20, 6);
  plan.items.push_back({name, Unit::kMicroseconds, per_round, [&sandboxes, module, code, pause] {
                          return call_time(sandboxes.with_preload(module, 2), code, pause);
                        }});
  plan.items.push_back({name + "_none_ready", Unit::kMicroseconds, per_round, [&sandboxes, module, code, pause] {
                          return call_time(sandboxes.with_preload(module, 0), code, pause);
                        }});
  plan.items.push_back({"sweep/preload/" + module, Unit::kMicroseconds, per_round, [&sandboxes, module, pause] {
                          return call_time(sandboxes.with_preload(module, 0), "1+1", pause);
                        }});
}

constexpr int kChunk = 65'536;

std::string printing_code(long bytes) {
  return "import os\nchunk = b'x' * 65536\n"
         "for _ in range(" + std::to_string(bytes / kChunk) + "):\n    os.write(1, chunk)\n"
         "os.write(1, chunk[:" + std::to_string(bytes % kChunk) + "])\nNone\n";
}

void add_output(Plan& plan, const Mode& mode, Sandboxes& sandboxes) {
  struct Last {
    double growth_kb = 0;
  };
  const auto last = std::make_shared<Last>();
  const int megabytes = mode.scaled(1024, 256);
  plan.items.push_back({"call/stdout", Unit::kMegabytesPerSecond, 1, [&sandboxes, megabytes, last] {
                          const std::string code = printing_code(long{megabytes} << 20);
                          reset_own_peak();
                          const double before = own_memory_kb();
                          const double time = call_time(sandboxes.ready(), code, kPause);
                          last->growth_kb = own_peak_kb() - before;
                          return megabytes / time * 1e6;
                        }});
  // Of this process, at its highest, while all that came: in the round's order after the item above.
  plan.items.push_back({"call/stdout_host_growth", Unit::kKilobytes, 1, [last] { return last->growth_kb; }});
}

}  // namespace

void add_calls(Plan& plan, const Mode& mode, Sandboxes& sandboxes, const std::string& directory, Stages& stages) {
  plan.items.push_back({"call/ready", Unit::kMicroseconds, mode.scaled(60, 20),
                        [&sandboxes, log = &stages["ready"]] {
                          return call_time(sandboxes.ready(), "1+1", kPause, {}, log);
                        }});
  plan.items.push_back({"call/none_ready", Unit::kMicroseconds, mode.scaled(40, 15),
                        [&sandboxes, log = &stages["none_ready"]] {
                          return call_time(sandboxes.none_ready(), "1+1", kPause, {}, log);
                        }});
  // Without the rest: the calls of a burst, while the children for the next ones are being forked.
  plan.items.push_back({"call/ready_in_a_burst", Unit::kMicroseconds, mode.scaled(16, 8),
                        [&sandboxes, number = 0]() mutable {
                          const bool rested = number++ % 8 == 0;
                          return call_time(sandboxes.sustained(8), "1+1", rested ? milliseconds(60) : milliseconds(0));
                        }});
  for (const Snippet& snippet : read_snippets(directory))
    plan.items.push_back({"call/snippet/" + snippet.name, Unit::kMicroseconds, mode.scaled(4, 2),
                          [&sandboxes, code = snippet.code] {
                            return call_time(sandboxes.ready(), code, kPause);
                          }});
  add_preload(plan, mode, sandboxes, "numpy", kNumpy, milliseconds(15));
  add_preload(plan, mode, sandboxes, "pandas", kPandas, milliseconds(25));
  plan.items.push_back({"call/value_1mb", Unit::kMicroseconds, mode.scaled(5, 2), [&sandboxes] {
                          Limits limits;
                          limits.return_value_bytes = 4'000'000;
                          limits.result_frame_bytes = 8'000'000;
                          return call_time(sandboxes.ready(), kMegabyteList, kPause, limits);
                        }});
  add_output(plan, mode, sandboxes);
}

void add_sweeps(Plan& plan, const Mode& mode, Sandboxes& sandboxes) {
  const int per_round = mode.scaled(5, 2);
  const auto add = [&](const std::string& name, const std::string& code) {
    plan.items.push_back({name, Unit::kMicroseconds, per_round, [&sandboxes, code] {
                            Limits limits;
                            limits.return_value_bytes = 16'000'000;
                            limits.result_frame_bytes = 32'000'000;
                            return call_time(sandboxes.ready(), code, kPause, limits);
                          }});
  };
  for (const long bytes : {1'000L, 10'000L, 100'000L, 1'000'000L, 10'000'000L}) {
    const std::string size = std::to_string(bytes);
    add("sweep/output/" + size, printing_code(bytes));
    add("sweep/value/" + size, "'x' * " + size);
  }
  for (const size_t lines : {1UL, 10UL, 100UL, 1'000UL, 10'000UL}) {
    std::string code;
    for (size_t i = 0; i < lines; ++i) code += "a" + std::to_string(i % 50) + " = [1, " + std::to_string(i) + "]\n";
    add("sweep/code/" + std::to_string(code.size()), code);
  }
  plan.items.push_back({"sweep/preload/none", Unit::kMicroseconds, per_round, [&sandboxes] {
                          return call_time(sandboxes.none_ready(), "1+1", kPause);
                        }});
}

namespace {

// What is ready when the clock starts would make a short window look better than a long run.
constexpr milliseconds kLeadIn{100};

double poll_rate(Sandbox& sandbox, int concurrency, milliseconds window) {
  std::list<Call> running;
  std::vector<pollfd> fds;
  const auto begin = Clock::now();
  const auto end = begin + kLeadIn + window;
  Clock::time_point counted_from{};
  long done = 0;
  for (auto now = begin; now < end; now = Clock::now()) {
    while (running.size() < static_cast<size_t>(concurrency)) running.push_back(sandbox.start("1+1"));
    fds.clear();
    for (Call& call : running) fds.push_back({call.fd(), POLLIN, 0});
    if (::poll(fds.data(), fds.size(), -1) < 0) throw std::runtime_error("poll failed");
    if (counted_from == Clock::time_point{} && Clock::now() - begin > kLeadIn) {
      counted_from = Clock::now();
      done = 0;
    }
    for (auto call = running.begin(); call != running.end();) {
      if (!call->advance()) {
        ++call;
        continue;
      }
      value_of(call->result());
      ++done;
      call = running.erase(call);
    }
  }
  const double rate = static_cast<double>(done) / microseconds_since(counted_from) * 1e6;
  for (Call& call : running) call.wait();
  return rate;
}

double thread_rate(Sandbox& sandbox, int concurrency, milliseconds window) {
  const auto begin = Clock::now();
  const auto counted_from = begin + kLeadIn;
  const auto end = counted_from + window;
  std::atomic<long> done = 0;
  std::atomic<bool> failed = false;
  std::vector<std::jthread> threads;
  for (int i = 0; i < concurrency; ++i)
    threads.emplace_back([&] {
      while (Clock::now() < end) {
        if (!sandbox.execute("1+1").ok()) failed = true;
        if (const auto now = Clock::now(); now > counted_from && now <= end) ++done;
      }
    });
  threads.clear();
  if (failed) throw std::runtime_error("a call failed");
  return static_cast<double>(done) / static_cast<double>(window.count()) * 1e3;
}

}  // namespace

void add_sustained(Plan& plan, const Mode& mode, Sandboxes& sandboxes) {
  const milliseconds window(mode.scaled(600, 200));
  for (const int concurrency : {1, 2, 4, 8}) {
    const std::string size = std::to_string(concurrency);
    plan.items.push_back({"sustained/poll/" + size, Unit::kPerSecond, 1, [&sandboxes, concurrency, window] {
                            return poll_rate(sandboxes.sustained(concurrency), concurrency, window);
                          }});
    plan.items.push_back({"sustained/threads/" + size, Unit::kPerSecond, 1, [&sandboxes, concurrency, window] {
                            return thread_rate(sandboxes.sustained(concurrency), concurrency, window);
                          }});
  }
}

}  // namespace pyplaypen::bench
