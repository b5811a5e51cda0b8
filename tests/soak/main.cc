// pyplaypen-soak: many calls of all kinds on one Sandbox while its processes are killed at random, and
// then a look at what is left. scripts/soak builds and runs it.
//   pyplaypen-soak [--calls N] [--concurrency N] [--seed N] [--ordinary-user]
// Exit status 0 when every call was answered once and rightly and nothing was left.
#include <grp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "pyplaypen/sandbox.h"
#include "runtime/sys/proc.h"
#include "tests/integration/processes.h"
#include "tests/soak/disturber.h"
#include "tests/soak/kinds.h"
#include "tests/unit/ordinary_user.h"

namespace pyplaypen::soak {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSkipped = 77;  // for ctest

struct Options {
  uint64_t calls = 50'000;
  uint64_t concurrency = 8;
  uint64_t seed = 1;
  bool as_ordinary_user = false;  // when root
};

constexpr int kUsage = 2;
constexpr int kCancelShare = 4;        // percent of calls
constexpr int kLookShare = 2;          // percent of calls after which processes are looked for
constexpr size_t kShownFailures = 20;
#ifdef __SANITIZE_ADDRESS__
constexpr long kMayGrow = 1 << 20;     // it keeps freed memory for a while
#else
constexpr long kMayGrow = 4096;        // kB, of this process, from a tenth of the calls on
#endif
constexpr double kDeadlineSeconds = 25;  // a call that takes this long has been forgotten for a while

// What the calls did, together.
class Tally {
 public:
  void answered(const Kind& kind, const std::string& answer, double ms) {
    const std::scoped_lock lock(mutex_);
    ++answers_[std::string(kind.name)][answer];
    ++count_;
    slowest_ms_ = std::max(slowest_ms_, ms);
    if (count_ == settled_at_) settled_kb_ = resident_kb();
  }
  void failed(uint64_t number, const Kind& kind, const std::string& why) {
    const std::scoped_lock lock(mutex_);
    if (++failures_ <= kShownFailures)
      std::fprintf(stderr, "call %llu (%s): %s\n", static_cast<unsigned long long>(number),
                   std::string(kind.name).c_str(), why.c_str());
  }
  void hit() {
    const std::scoped_lock lock(mutex_);
    ++hit_;
  }
  static long resident_kb() { return std::stol(status_field(::getpid(), "VmRSS")); }

  void settle_at(uint64_t count) { settled_at_ = count; }
  long settled_kb() const { return settled_kb_; }
  uint64_t count() const { return count_; }
  uint64_t failures() const { return failures_; }
  uint64_t hits() const { return hit_; }
  double slowest_ms() const { return slowest_ms_; }
  const std::map<std::string, std::map<std::string, uint64_t>>& answers() const { return answers_; }

 private:
  std::mutex mutex_;
  std::map<std::string, std::map<std::string, uint64_t>> answers_;
  uint64_t count_ = 0;
  uint64_t failures_ = 0;
  uint64_t hit_ = 0;  // answered as a call whose zygote, keeper or process was killed
  uint64_t settled_at_ = 0;
  long settled_kb_ = 0;
  double slowest_ms_ = 0;
};

const Kind& choose(std::mt19937_64& random) {
  static const int total = [] {
    int sum = 0;
    for (const Kind& kind : kinds()) sum += kind.weight;
    return sum;
  }();
  int at = std::uniform_int_distribution<int>(0, total - 1)(random);
  for (const Kind& kind : kinds())
    if ((at -= kind.weight) < 0) return kind;
  return kinds().front();
}

// What a call may also answer when a process behind it was killed meanwhile.
bool is_answer_of_a_killed_call(const Result& result) {
  return result.error && (result.error->type == ErrorType::kInternal ||
                          (result.error->type == ErrorType::kCrash && result.error->signal == SIGKILL));
}

class Soak {
 public:
  Soak(const Options& options, Sandbox& sandbox, const Disturbance& disturbance, Tally& tally)
      : options_(options), sandbox_(sandbox), disturbance_(disturbance), tally_(tally) {}

  void run() {
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < options_.concurrency; ++i)
      threads.emplace_back([this] {
        for (uint64_t number; (number = next_++) < options_.calls;) call(number);
      });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  void call(uint64_t number) {
    std::seed_seq seed{options_.seed, number};
    std::mt19937_64 random(seed);
    const Kind& kind = choose(random);
    const auto percent = [&] { return std::uniform_int_distribution<int>(0, 99)(random); };
    Limits limits;
    if (kind.adjust != nullptr) kind.adjust(limits);
    Context context;
    context.request_id = "soak-" + std::to_string(number);
    const bool cancel = percent() < kCancelShare;
    const auto patience = std::chrono::microseconds(std::uniform_int_distribution<int>(0, 20'000)(random));

    const uint64_t gone = disturbance_.done;
    const auto began = Clock::now();
    bool cancelled = false;
    Result result;
    try {
      if (cancel) {
        Call under_way = sandbox_.start(fill_in(kind.code, number), context, limits);
        cancelled = !ends_within(under_way, patience);
        if (cancelled) under_way.cancel();
        under_way.wait();
        result = under_way.result();
      } else {
        result = sandbox_.execute(fill_in(kind.code, number), context, limits);
      }
    } catch (const std::exception& error) {
      return tally_.failed(number, kind, std::string("threw ") + error.what());
    }
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
    const bool disturbed = disturbance_.begun != gone;
    if (!result.artifact_root.empty()) std::filesystem::remove_all(result.artifact_root);

    tally_.answered(kind, answer_of(result), ms);
    if (result.request_id != context.request_id)
      return tally_.failed(number, kind, "the answer to " + result.request_id);
    if (ms > kDeadlineSeconds * 1000) tally_.failed(number, kind, "took " + std::to_string(ms) + " ms");
    const auto is_alive = [](pid_t pid) { return !is_dead(pid); };
    if (percent() < kLookShare && std::ranges::any_of(processes_with(fill_in("777000@", number)), is_alive))
      tally_.failed(number, kind, "left a process");
    if (cancelled && result.error && result.error->type == ErrorType::kCancelled) return;
    const std::string wrong = wrong_with(kind, result, number);
    if (wrong.empty()) return;
    if (disturbed && is_answer_of_a_killed_call(result)) return tally_.hit();
    tally_.failed(number, kind, wrong);
  }

  static bool ends_within(Call& call, std::chrono::microseconds patience) {
    const auto end = Clock::now() + patience;
    while (!call.advance()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
      pollfd ready{call.fd(), POLLIN, 0};
      if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) == 0) return false;
    }
    return true;
  }

  const Options& options_;
  Sandbox& sandbox_;
  const Disturbance& disturbance_;
  Tally& tally_;
  std::atomic<uint64_t> next_{0};
};

void print_answers(const Tally& tally) {
  std::map<std::string, uint64_t> by_type;
  for (const auto& [kind, answers] : tally.answers())
    for (const auto& [answer, count] : answers) by_type[answer] += count;
  std::printf("answers:");
  for (const auto& [answer, count] : by_type) std::printf(" %s %llu", answer.c_str(), static_cast<unsigned long long>(count));
  std::printf("\n");
}

// Runs in: a child of the process that afterwards finds everything that was left.
bool soak(const Options& options, const std::filesystem::path& directory) {
  bool good = true;
  const auto expect = [&](bool holds, const std::string& sentence) {
    if (!holds) std::fprintf(stderr, "%s\n", sentence.c_str());
    good = good && holds;
  };
  ::setenv("TMPDIR", directory.c_str(), 1);
  const size_t fds_before = sys::open_fds().size();
  Tally tally;
  tally.settle_at(std::max<uint64_t>(1, options.calls / 10));
  {
    SandboxOptions sandbox_options;
    sandbox_options.max_concurrency = static_cast<int>(options.concurrency);
    sandbox_options.on_unenforceable = OnUnenforceable::kWarn;
    Sandbox sandbox(sandbox_options);
    Disturber disturber(::getppid(), options.seed);
    const auto began = Clock::now();
    Soak(options, sandbox, disturber.disturbance(), tally).run();
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    disturber.stop();
    const Kills& kills = disturber.kills();
    const long kb = Tally::resident_kb();
    std::printf("%llu calls in %.1f s: %.0f a second, the slowest %.0f ms\n",
                static_cast<unsigned long long>(tally.count()), seconds,
                static_cast<double>(tally.count()) / seconds, tally.slowest_ms());
    print_answers(tally);
    std::printf("killed: %llu zygotes, %llu keepers, %llu children; %llu calls told of it\n",
                static_cast<unsigned long long>(kills.zygotes), static_cast<unsigned long long>(kills.keepers),
                static_cast<unsigned long long>(kills.children), static_cast<unsigned long long>(tally.hits()));
    std::printf("memory: %ld kB after a tenth, %ld kB at the end\n", tally.settled_kb(), kb);
    expect(disturber.failure().empty(), disturber.failure());
    expect(tally.count() == options.calls, "not every call was answered");
    expect(tally.failures() == 0, std::to_string(tally.failures()) + " calls were answered wrongly");
    expect(kb <= tally.settled_kb() + kMayGrow, "memory grew");
    const Result next = sandbox.execute("6 * 7");
    expect(next.return_value == "42", "the next call does not work");
    expect(sys::thread_count() == 1, "a thread was left");
  }
  expect(sys::open_fds().size() == fds_before, "descriptors were left: " + std::to_string(sys::open_fds().size()) +
                                                   " instead of " + std::to_string(fds_before));
  return good;
}

std::optional<uint64_t> number_in(const char* text) {
  if (text == nullptr) return std::nullopt;
  uint64_t number = 0;
  const char* const end = text + std::string_view(text).size();
  const auto parsed = std::from_chars(text, end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number == 0) return std::nullopt;
  return number;
}

std::optional<Options> parse(char** argv) {
  Options options;
  for (char** at = argv + 1; *at != nullptr; at += 2) {
    const std::string_view name = *at;
    if (name == "--ordinary-user") {
      options.as_ordinary_user = true;
      --at;
      continue;
    }
    uint64_t* const into = name == "--calls"         ? &options.calls
                           : name == "--concurrency" ? &options.concurrency
                           : name == "--seed"        ? &options.seed
                                                     : nullptr;
    const auto number = number_in(at[1]);
    if (into == nullptr || !number) return std::nullopt;
    *into = *number;
  }
  return options;
}

// What was left by a process that has ended and all of its own: our children, since we are a subreaper.
// Zombies on their way out are reaped; anything that is alive is one too many.
int count_survivors() {
  int alive = 0;
  const bool all_gone = comes_true([&] {
    while (::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
    }
    alive = static_cast<int>(sys::children().size());
    return alive == 0;
  });
  return all_gone ? 0 : alive;
}

int run(const Options& options) {
  constexpr uid_t kUser = testing::kOrdinaryUser;
  if (options.as_ordinary_user && ::geteuid() == 0 && !testing::everybody_may_enter(PYPLAYPEN_BUILD)) {
    std::printf("skipped: an ordinary user may not go where the build lies\n");
    return kSkipped;
  }
  if (options.as_ordinary_user && ::geteuid() == 0 &&
      (::setgroups(0, nullptr) != 0 || ::setresgid(kUser, kUser, kUser) != 0 || ::setresuid(kUser, kUser, kUser) != 0))
    return 1;
  const auto directory = std::filesystem::temp_directory_path() / ("pyplaypen-soak-" + std::to_string(::getpid()));
  std::filesystem::create_directory(directory);
  std::filesystem::permissions(directory, std::filesystem::perms(0755));
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return 1;
  // Kilobytes of core from each crash would be what is measured.
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  std::printf("seed %llu, %llu at a time, user %u\n", static_cast<unsigned long long>(options.seed),
              static_cast<unsigned long long>(options.concurrency), ::geteuid());
  std::fflush(nullptr);
  const pid_t host = ::fork();
  if (host == 0) {
    const bool good = soak(options, directory);
    std::fflush(nullptr);
    ::_exit(good ? 0 : 1);
  }
  // Zygotes that are killed are ours to reap.
  int status = 0;
  for (pid_t ended = 0; ended != host;) {
    int one = 0;
    ended = ::waitpid(-1, &one, __WALL);
    if (ended == host) status = one;
    if (ended < 0) return 1;
  }
  const int survivors = count_survivors();
  const auto entries = std::distance(std::filesystem::directory_iterator(directory), {});
  std::printf("left: %d processes, %td entries in TMPDIR\n", survivors, entries);
  std::filesystem::remove_all(directory);
  const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0 && survivors == 0 && entries == 0;
  std::printf("%s\n", good ? "good" : "FAILED");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace pyplaypen::soak

int main(int, char** argv) {
  const auto options = pyplaypen::soak::parse(argv);
  if (!options) {
    std::fprintf(stderr, "usage: pyplaypen-soak [--calls N] [--concurrency N] [--seed N] [--ordinary-user]\n");
    return pyplaypen::soak::kUsage;
  }
  return pyplaypen::soak::run(*options);
}
