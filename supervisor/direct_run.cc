#include "supervisor/direct_run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "runtime/jail/descendants.h"
#include "runtime/jail/landlock.h"
#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"
#include "runtime/sys/signals.h"
#include "supervisor/output_pump.h"
#include "supervisor/private_tmp.h"
#include "supervisor/run_guard.h"

namespace pyplaypen::supervisor {
namespace {

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC

constexpr std::string_view kTmpVariable = "TMPDIR=";

// A guard costs a fork, 200 us: most commands that end sooner than this pay nothing for it.
constexpr std::chrono::milliseconds kGuardAfter{20};

std::string take_tmpdir(std::vector<std::string>& environment) {
  std::string value;
  std::erase_if(environment, [&](const std::string& entry) {
    if (!entry.starts_with(kTmpVariable)) return false;
    value = entry.substr(kTmpVariable.size());
    return true;
  });
  return value;
}

// The target's end of a pipe, made its own so that it can open /dev/stdout anew.
sys::UniqueFd give(sys::UniqueFd pipe, const std::optional<jail::Identity>& identity) {
  if (identity) sys::check(::fchown(pipe.get(), identity->uid, identity->gid), "fchown", "pipe");
  return pipe;
}

ResourceLimits resource_limits(const DirectRun& run) {
  ResourceLimits limits;
  limits.cpu_seconds = static_cast<uint64_t>(run.limits.cpu_seconds);
  limits.memory_bytes = run.limits.memory_bytes;
  limits.open_files = run.limits.open_files;
  limits.file_bytes = run.limits.file_bytes;
  // Counted for the user: set where the user is the command's own. start_minded() decides for itself.
  if (run.identity || !run.namespaces.all().empty()) limits.process_count = run.limits.process_count;
  return limits;
}

sys::UniqueFd make_ruleset(const DirectRun& run, const std::string& tmp) {
  LandlockRuleset ruleset;
  ruleset.scope_signals = ruleset.scope_abstract_sockets = true;
  ruleset.missing = LandlockMissing::kLeaveOut;  // the scopes; the write set is required below
  if (run.writes == WriteSet::kConfined) ruleset.write_paths = {".", tmp, "/dev/null"};
  sys::UniqueFd fd = jail::build_ruleset(ruleset, run.landlock_abi);
  if (run.writes == WriteSet::kConfined && !fd)
    throw std::runtime_error("confining writes needs Landlock, which this kernel does not offer");
  return fd;
}

double milliseconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
}

bool ended_by_cpu_limit(const sys::ChildExit& ended, double cpu_seconds) {
  if (!WIFSIGNALED(ended.status)) return false;
  if (WTERMSIG(ended.status) == SIGXCPU) return true;
  // Ignored: then SIGKILL, at the hard limit one second later. The kernel goes by the time that it
  // sampled at its ticks, and tells us the exact one: 1.5 % apart on a quiet machine, a third of a
  // second on a busy one. So what has used up the soft limit and is killed counts.
  const double about = cpu_seconds;
  const double used = milliseconds(ended.usage.ru_utime) + milliseconds(ended.usage.ru_stime);
  return WTERMSIG(ended.status) == SIGKILL && used / 1e3 >= about;
}

// A command that is running, with everything that is watched while it does.
class Running {
 public:
  Running(const DirectRun& run, Clock::time_point started);
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { end_tree(); }

  DirectResult finish();

 private:
  void start(const DirectRun& run);
  // True when the command has ended.
  bool step();
  bool reap();
  bool reap_minder();
  void pass_on(int signal);
  void set_guard();
  void end_tree();
  void deliver_rest();
  [[nodiscard]] bool wait_for_event(const timespec* timeout);

  Clock::time_point started_;
  Clock::time_point deadline_;
  double cpu_seconds_;
  std::optional<jail::Descendants> descendants_;  // of our own; absent: the minder's
  sys::SignalFd signals_;
  std::optional<PrivateTmp> tmp_;
  std::optional<OutputPump> out_;
  std::optional<OutputPump> err_;
  sys::Child child_;
  std::unique_ptr<jail::Minder> minder_;
  rusage all_of_minder_{};
  std::optional<sys::ChildExit> ended_;
  bool tree_ended_ = false;
  Clock::time_point guard_due_ = Clock::time_point::max();
  sys::UniqueFd guard_;
  DirectResult result_;
};

Running::Running(const DirectRun& run, Clock::time_point started)
    : started_(started),
      deadline_(started + std::chrono::nanoseconds(static_cast<int64_t>(run.limits.wall_seconds * 1e9))),
      cpu_seconds_(run.limits.cpu_seconds),
      signals_({SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
  if (run.namespaces.all().empty())
    descendants_.emplace(run.landlock_abi, run.writes == WriteSet::kConfined);
  start(run);
}

void Running::start(const DirectRun& run) {
  std::vector<std::string> environment = run.environment;
  tmp_.emplace(take_tmpdir(environment), run.identity);
  environment.push_back(std::string(kTmpVariable) + tmp_->path());
  const jail::Program program(run.argv, std::move(environment));
  const sys::UniqueFd ruleset = make_ruleset(run, tmp_->path());

  const bool streamed = run.output == OutputMode::kStreamed;
  auto [out_source, out_sink] = sys::pipe_pair();
  out_sink = give(std::move(out_sink), run.identity);
  out_.emplace(std::move(out_source), Capture(run.limits.stdout_bytes, run.hashing),
               streamed ? STDOUT_FILENO : -1);
  sys::UniqueFd err_sink;
  if (run.streams == Streams::kApart) {
    auto [source, sink] = sys::pipe_pair();
    err_sink = give(std::move(sink), run.identity);
    err_.emplace(std::move(source), Capture(run.limits.stderr_bytes, run.hashing),
                 streamed ? STDERR_FILENO : -1);
  }
  sys::UniqueFd empty;
  if (run.stdin_source == StdinSource::kEmpty)
    empty.reset(sys::check(::open("/dev/null", O_RDONLY | O_CLOEXEC), "open", "/dev/null"));

  jail::Plan plan;
  plan.stdio[0] = empty.get();
  plan.stdio[1] = out_sink.get();
  plan.stdio[2] = err_sink ? err_sink.get() : out_sink.get();
  plan.ruleset = ruleset.get();
  plan.limits = resource_limits(run);
  plan.program = &program;
  if (descendants_) {
    plan.identity = run.identity;
    jail::Launch launched = jail::launch(plan);
    child_ = std::move(launched.child);
    result_.failure = launched.failure;
    // Where killing all that can be reached would end strangers, there is none.
    if (descendants_->reach() == jail::Reach::kScope) guard_due_ = started_ + kGuardAfter;
    return;
  }
  jail::MinderPlan minded_plan;
  minded_plan.payload = plan;
  Minded minded = start_minded(run.namespaces, std::move(minded_plan), run.identity,
                               CountTasks::kOfTheCallOnly, run.landlock_abi);
  minder_ = std::move(minded.minder);
  result_.failure = minder_->failure();
  result_.namespaces = minded.plan.namespaces;
  result_.notes = minded.plan.notes;
}

// False when the time is up.
bool Running::wait_for_event(const timespec* timeout) {
  pollfd watched[] = {{signals_.fd(), POLLIN, 0},
                      out_->interest(),
                      err_ ? err_->interest() : pollfd{-1, 0, 0},
                      {minder_ && !ended_ ? minder_->fd() : -1, POLLIN, 0}};
  return sys::check(
             sys::retry_eintr([&] { return ::ppoll(watched, std::size(watched), timeout, nullptr); }),
             "ppoll") > 0;
}

bool Running::reap_minder() {
  pollfd state{minder_->fd(), POLLIN, 0};
  if (::poll(&state, 1, 0) <= 0) return false;
  const jail::MinderEnd end = minder_->leave();
  all_of_minder_ = end.all;
  // Without a status: nobody who could be told kills the minder but the host's kernel, out of memory.
  ended_ = sys::ChildExit{end.status.value_or(SIGKILL), end.usage};
  return true;
}

bool Running::reap() {
  while (true) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return false;
    if (info.si_pid == child_.pid()) {
      ended_ = child_.try_wait();
      return true;
    }
    ::waitpid(info.si_pid, nullptr, 0);  // an orphan of the tree
  }
}

void Running::end_tree() {
  if (std::exchange(tree_ended_, true)) return;
  child_.kill_and_reap();
  if (descendants_) descendants_->kill_all();
  if (!minder_) return;
  minder_->stop();
  if (!ended_) all_of_minder_ = minder_->leave().all;
}

void Running::pass_on(int signal) {
  if (minder_) return minder_->pass_on(signal);
  // A command that left its group gets it all the same.
  if (::kill(-child_.pid(), signal) != 0) child_.signal(signal);
}

void Running::set_guard() {
  guard_due_ = Clock::time_point::max();
  guard_ = start_guard(tmp_->path());
}

bool Running::step() {
  out_->advance();
  if (err_) err_->advance();
  while (const std::optional<int> signal = signals_.take()) {
    if (*signal != SIGCHLD) {
      pass_on(*signal);
    } else if (descendants_ && reap()) {
      return true;
    }
  }
  return minder_ && reap_minder();
}

// What is in the pipes when nobody is left to write. A reader who has stalled is waited for, until a
// signal asks to stop.
void Running::deliver_rest() {
  const auto drain = [](OutputPump& pump) {
    while (pump.advance()) {
    }
  };
  while (true) {
    drain(*out_);
    if (err_) drain(*err_);
    const bool out_waits = out_->interest().events == POLLOUT && !out_->done();
    const bool err_waits = err_ && err_->interest().events == POLLOUT && !err_->done();
    if (!out_waits && !err_waits) return;
    (void)wait_for_event(nullptr);
    while (const std::optional<int> signal = signals_.take())
      if (*signal != SIGCHLD) return;
  }
}

DirectResult Running::finish() {
  if (result_.failure.error != 0) {
    result_.status = DirectResult::Status::kNotStarted;
    return std::move(result_);
  }
  while (!ended_) {
    const auto now = Clock::now();
    if (now >= guard_due_) set_guard();
    const auto left = std::min(deadline_, guard_due_) - now;
    const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    if (now >= deadline_) break;
    const timespec timeout{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    if (wait_for_event(&timeout)) step();
  }
  result_.usage.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - started_).count();
  if (ended_) {
    result_.wait_status = ended_->status;
    result_.cpu_limit = ended_by_cpu_limit(*ended_, cpu_seconds_);
  } else {
    result_.status = DirectResult::Status::kTimeout;
  }
  end_tree();

  rusage usage = all_of_minder_;
  if (descendants_) ::getrusage(RUSAGE_CHILDREN, &usage);
  result_.usage.cpu_ms = milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
  result_.usage.max_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  deliver_rest();
  tmp_.reset();
  const auto worse = [&](const OutputPump& pump) {
    const int error = pump.delivery_error();
    if (error != 0 && error != EPIPE) result_.delivery_error = error;
  };
  worse(*out_);
  result_.mid_line = (err_ ? *err_ : *out_).mid_line();
  result_.stdout_output = out_->take();
  if (err_) {
    worse(*err_);
    result_.stderr_output = err_->take();
  }
  return std::move(result_);
}

}  // namespace

DirectResult direct_run(const DirectRun& run) {
  // Inherited as ignored, it would have the kernel reap children before we learn how they ended.
  ::signal(SIGCHLD, SIG_DFL);
  return Running(run, Clock::now()).finish();
}

}  // namespace pyplaypen::supervisor
