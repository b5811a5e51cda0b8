// pyplaypen-bench: measures everything side by side and writes the samples. scripts/bench builds it,
// runs it and judges.
//   pyplaypen-bench OUT.json [--quick] [--rounds=N] [--calls=N] [--benchmark_filter=REGEX ...]
//
// A round goes through all items once, in random order, a few samples each, so that what else the
// machine does meanwhile (a neighbour, a clock that changes) falls on an item and on its floor alike.
// Google Benchmark runs the rounds; the samples are kept here, since it keeps means only.
#include <benchmark/benchmark.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/calls.h"
#include "bench/floors.h"
#include "bench/growth.h"
#include "bench/item.h"
#include "bench/parts.h"
#include "bench/sandboxes.h"

namespace pyplaypen::bench {
namespace {

struct Options {
  Mode mode;
  int calls = 100'000;
  std::string output;
};

class Silent : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

struct Samples {
  std::vector<std::vector<double>> rounds;
  std::string failure;
};

void sample(benchmark::State& state, const Item& item, Samples& samples) {
  samples.rounds.emplace_back();
  for (auto unused : state) {
    (void)unused;
    const auto begin = Clock::now();
    try {
      samples.rounds.back().push_back(item.measure());
    } catch (const std::exception& error) {
      samples.failure = error.what();
      state.SkipWithError(samples.failure.c_str());
      return;
    }
    state.SetIterationTime(microseconds_since(begin) / 1e6);
  }
}

nlohmann::json machine() {
  utsname name{};
  ::uname(&name);
  std::string cpu;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; cpu.empty() && std::getline(info, line);)
    if (line.starts_with("model name")) cpu = line.substr(line.find(':') + 2);
  std::string load;
  std::ifstream average("/proc/loadavg");
  std::getline(average, load);
  return {{"kernel", name.release}, {"architecture", name.machine},
          {"cpu", cpu}, {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)},
          {"root", ::geteuid() == 0}, {"load_at_start", load}};
}

// Medians, us.
nlohmann::json medians(const Stages& stages) {
  constexpr std::pair<const char*, double StageTimes::*> kStages[] = {
      {"queue", &StageTimes::queue_ms},       {"dispatch", &StageTimes::dispatch_ms},
      {"confine", &StageTimes::confine_ms},   {"evaluate", &StageTimes::evaluate_ms},
      {"collect", &StageTimes::collect_ms},   {"teardown", &StageTimes::teardown_ms}};
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [item, calls] : stages) {
    if (calls.empty()) continue;
    for (const auto& [name, member] : kStages) {
      std::vector<double> times;
      for (const StageTimes& call : calls) times.push_back(call.*member * 1000);
      std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
      out[item][name] = times[times.size() / 2];
    }
  }
  return out;
}

int run(const Options& options) {
  nlohmann::json out;
  out["machine"] = machine();
  out["version"] = version();
  out["quick"] = options.mode.quick;

  Sandboxes sandboxes;
  Stages stages;
  Plan plan;
  add_floors(plan, options.mode);
  add_commands(plan, options.mode);
  add_calls(plan, options.mode, sandboxes, PYPLAYPEN_BENCH_SNIPPETS, stages);
  add_parts(plan, options.mode);
  add_sweeps(plan, options.mode, sandboxes);
  add_sustained(plan, options.mode, sandboxes);
  out["python"] = sandboxes.ready().python_version();

  std::vector<Samples> samples(plan.items.size());
  for (size_t i = 0; i < plan.items.size(); ++i)
    benchmark::RegisterBenchmark(plan.items[i].name.c_str(), [&, i](benchmark::State& state) {
      sample(state, plan.items[i], samples[i]);
    })->Iterations(plan.items[i].per_round)->UseManualTime();
  Silent silent;
  for (int round = 0; round < options.mode.rounds; ++round) {
    std::cerr << "\rround " << round + 1 << " of " << options.mode.rounds << std::flush;
    benchmark::RunSpecifiedBenchmarks(&silent);
  }
  std::cerr << "\n";

  out["skipped"] = plan.skipped;
  out["stages_us"] = medians(stages);
  for (size_t i = 0; i < plan.items.size(); ++i) {
    if (samples[i].rounds.empty()) continue;
    nlohmann::json& item = out["items"][plan.items[i].name];
    item["unit"] = unit_name(plan.items[i].unit);
    item["rounds"] = samples[i].rounds;
    if (!samples[i].failure.empty()) item["failure"] = samples[i].failure;
  }
  if (options.calls > 0) {
    std::cerr << "memory, then " << options.calls << " calls in a row\n";
    out["memory"]["none"] = measure_memory(sandboxes.ready());
    for (const std::string module : {"numpy", "pandas"})
      if (!plan.skipped.contains("call/" + module))
        out["memory"][module] = measure_memory(sandboxes.with_preload(module, 2));
    out["growth"] = measure_growth(options.calls);
  }
  std::ofstream file(options.output);
  file << out.dump() << "\n";
  return file.good() ? 0 : 1;
}

}  // namespace
}  // namespace pyplaypen::bench

int main(int argc, char** argv) {
  using namespace pyplaypen::bench;
  Options options;
  std::string interleave = "--benchmark_enable_random_interleaving=true";
  std::vector<char*> arguments = {argv[0], interleave.data()};
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--quick") {
      options.mode = {true, 5};
      options.calls = 5'000;
    } else if (argument.starts_with("--rounds=")) {
      options.mode.rounds = std::atoi(argv[i] + std::strlen("--rounds="));
    } else if (argument.starts_with("--calls=")) {
      options.calls = std::atoi(argv[i] + std::strlen("--calls="));
    } else if (argument.starts_with("--")) {
      arguments.push_back(argv[i]);
    } else {
      options.output = argument;
    }
  }
  // Commands run as another user where we are root, and are told when they cannot write where they are.
  options.output = options.output.empty() ? "" : std::filesystem::absolute(options.output).string();
  std::filesystem::current_path(std::filesystem::temp_directory_path());
  if (options.output.empty()) {
    std::cerr << "pyplaypen-bench: started by scripts/bench; needs the name of its output file\n";
    return 2;
  }
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::cerr << "pyplaypen-bench: " << error.what() << "\n";
    return 1;
  }
}
