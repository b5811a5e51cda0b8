#include "pyplaypen/isolate.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "runtime/jail/landlock.h"
#include "runtime/jail/minder.h"
#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"
#include "supervisor/minded.h"
#include "supervisor/output_pump.h"

namespace pyplaypen {
namespace {

using Clock = std::chrono::steady_clock;
using Status = IsolateOutcome::Status;

constexpr int kScopeAbi = 6;  // man 7 landlock

double milliseconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
}

std::vector<std::string> entries_of(const std::optional<Environment>& environment) {
  std::vector<std::string> entries;
  if (environment) {
    for (const auto& [name, value] : *environment) entries.push_back(name + "=" + value);
  } else {
    for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  }
  return entries;
}

// Scoped, so that it cannot signal the process that minds it.
sys::UniqueFd ruleset_of(const IsolateOptions& options, int abi) {
  LandlockRuleset ruleset = options.landlock.value_or(LandlockRuleset{});
  if (abi >= kScopeAbi) ruleset.scope_signals = true;
  return jail::build_ruleset(ruleset, abi);
}

supervisor::NamespaceRequest request_of(const IsolateOptions& options) {
  supervisor::NamespaceRequest request;
  request.namespaces = options.namespaces;
  request.strictness = options.strictness;
  request.map_to = options.map_to;
  request.hostname = options.hostname;
  request.proc = options.proc;
  return request;
}

void check(const IsolateOptions& options) {
  if (options.timeout_seconds && !(*options.timeout_seconds >= 0))
    throw Refused("timeout_seconds must not be negative, nor NaN");
}

// The two pipes, with what has come out of them.
class Streams {
 public:
  explicit Streams(const IsolateOptions& options) {
    auto [out, out_sink] = sys::pipe_pair();
    auto [err, err_sink] = sys::pipe_pair();
    sources_ = {out.get(), err.get()};
    sinks_ = {std::move(out_sink), std::move(err_sink)};
    using supervisor::Capture;
    using supervisor::Hashing;
    out_.emplace(std::move(out), Capture(options.stdout_bytes, Hashing::kNone), -1);
    err_.emplace(std::move(err), Capture(options.stderr_bytes, Hashing::kNone), -1);
  }

  [[nodiscard]] const std::array<sys::UniqueFd, 2>& sinks() const { return sinks_; }
  [[nodiscard]] std::vector<int> all() const {
    return {sources_[0], sources_[1], sinks_[0].get(), sinks_[1].get()};
  }
  void close_sinks() { sinks_ = {}; }

  // False when the time is up.
  bool wait(int minder, const timespec* timeout) {
    pollfd watched[] = {{minder, POLLIN, 0}, out_->interest(), err_->interest()};
    return sys::check(sys::retry_eintr([&] { return ::ppoll(watched, 3, timeout, nullptr); }), "ppoll") > 0;
  }
  // Bounded, so that a flood cannot keep us from looking at the clock.
  void advance() {
    out_->advance();
    err_->advance();
  }
  void finish(IsolateOutcome& outcome) {
    for (supervisor::OutputPump* pump : {&*out_, &*err_})
      while (pump->advance()) {
      }
    outcome.stdout_output = out_->take();
    outcome.stderr_output = err_->take();
  }

 private:
  std::array<int, 2> sources_{};
  std::array<sys::UniqueFd, 2> sinks_;
  std::optional<supervisor::OutputPump> out_;
  std::optional<supervisor::OutputPump> err_;
};

// True when the minder has ended before the time was up.
bool wait_for_end(const jail::Minder& minder, Streams& streams, const std::optional<Clock::time_point>& deadline) {
  for (;;) {
    timespec timeout{};
    if (deadline) {
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(*deadline - Clock::now()).count();
      if (left <= 0) return false;
      timeout = {left / 1'000'000'000, left % 1'000'000'000};
    }
    if (!streams.wait(minder.fd(), deadline ? &timeout : nullptr)) continue;
    streams.advance();
    pollfd ended{minder.fd(), POLLIN, 0};
    if (::poll(&ended, 1, 0) > 0) return true;
  }
}

std::optional<Clock::time_point> deadline_of(const IsolateOptions& options, Clock::time_point started) {
  constexpr double kForever = 1e9;  // s; beyond what the clock's type holds
  if (!options.timeout_seconds || *options.timeout_seconds > kForever) return std::nullopt;
  return started + std::chrono::nanoseconds(static_cast<int64_t>(std::ceil(*options.timeout_seconds * 1e9)));
}

void set_end(IsolateOutcome& outcome, const jail::MinderEnd& end, bool in_time) {
  if (end.failure.error != 0) {
    outcome.error_number = end.failure.error;
    outcome.message = "setting up the child failed at stage '" +
                      std::string(policy::stage_name(end.failure.stage)) + "': " + ::strerror(end.failure.error);
  } else if (!in_time && !end.status) {
    outcome.status = Status::kTimeout;
    outcome.message = "the time was up: it was killed with all that it had started";
  } else if (!end.status) {
    outcome.message = "the process that minds it was killed";
  } else if (WIFSIGNALED(*end.status)) {
    outcome.status = Status::kSignaled;
    outcome.signal = WTERMSIG(*end.status);
  } else {
    outcome.status = Status::kExited;
    outcome.exit_status = WEXITSTATUS(*end.status);
    if (end.escaped) {
      outcome.error_number = end.escaped->error_number;
      outcome.message = end.escaped->message;
    }
    outcome.ok = outcome.exit_status == 0 && !end.escaped;
  }
}

IsolateOutcome isolate(jail::MinderPlan plan, const IsolateOptions& options) {
  check(options);
  const auto started = Clock::now();
  const int abi = landlock_abi();
  const sys::UniqueFd ruleset = ruleset_of(options, abi);
  const sys::UniqueFd empty(sys::check(::open("/dev/null", O_RDONLY | O_CLOEXEC), "open", "/dev/null"));
  sys::UniqueFd directory;
  if (!options.cwd.empty())
    directory.reset(sys::check(::open(options.cwd.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open",
                               options.cwd.string()));
  Streams streams(options);
  plan.payload.stdio[0] = empty.get();
  plan.payload.stdio[1] = streams.sinks()[0].get();
  plan.payload.stdio[2] = streams.sinks()[1].get();
  plan.payload.directory = directory.get();
  plan.payload.ruleset = ruleset.get();
  plan.payload.limits = options.limits;
  plan.not_for_callable = streams.all();
  for (const int fd : {ruleset.get(), empty.get(), directory.get()}) plan.not_for_callable.push_back(fd);

  IsolateOutcome outcome;
  supervisor::Minded minded = supervisor::start_minded(request_of(options), std::move(plan), std::nullopt,
                                                       supervisor::CountTasks::kAlways, abi);
  jail::Minder& minder = *minded.minder;
  streams.close_sinks();
  outcome.namespaces = minded.plan.namespaces;
  outcome.notes = minded.plan.notes;
  for (const std::string& sentence : outcome.notes) {
    if (options.note) {
      options.note(sentence);
    } else {
      std::fprintf(stderr, "pyplaypen: %s\n", sentence.c_str());
    }
  }
  if (const jail::SetupReport failure = minder.failure(); failure.error != 0) {
    outcome.error_number = failure.error;
    outcome.message = "starting it failed at stage '" + std::string(policy::stage_name(failure.stage)) +
                      "': " + ::strerror(failure.error);
    return outcome;
  }
  const bool in_time = wait_for_end(minder, streams, deadline_of(options, started));
  minder.stop();
  const jail::MinderEnd end = minder.wait();
  outcome.usage.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - started).count();
  outcome.usage.cpu_ms = milliseconds(end.all.ru_utime) + milliseconds(end.all.ru_stime);
  outcome.usage.max_rss_bytes = static_cast<uint64_t>(end.all.ru_maxrss) * 1024;
  streams.finish(outcome);
  set_end(outcome, end, in_time);
  return outcome;
}

}  // namespace

IsolateOutcome run_argv(const std::vector<std::string>& argv, const IsolateOptions& options) {
  const jail::Program program(argv, entries_of(options.environment));
  jail::MinderPlan plan;
  plan.payload.program = &program;
  return isolate(std::move(plan), options);
}

IsolateOutcome run_function(const std::function<int()>& callable, const IsolateOptions& options) {
  jail::MinderPlan plan;
  plan.callable = callable;
  return isolate(std::move(plan), options);
}

}  // namespace pyplaypen
