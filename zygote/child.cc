#include "zygote/child.h"

#include <Python.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <vector>

#include "pyplaypen/privilege.h"
#include "runtime/jail/landlock.h"
#include "runtime/jail/launch.h"
#include "runtime/policy/stage.h"
#include "runtime/python/call_state.h"
#include "runtime/python/run.h"
#include "runtime/python/sigsegv_hint.h"
#include "runtime/python/warm_up.h"
#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"
#include "runtime/sys/raw.h"
#include "runtime/wire/codec.h"

namespace pyplaypen::zygote {
namespace {

using policy::Stage;

// Above anything that user code closes by habit (os.closerange(3, 256)), and above its open_files
// limit, which bars new descriptors only. Lower where this process may not have that many.
constexpr int kPreferredChannelFd = 1000;
int channel_fd = kPreferredChannelFd;

bool place_channel(int channel) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= kPreferredChannelFd)
    channel_fd = static_cast<int>(limit.rlim_cur) - 1;
  return ::dup3(channel, channel_fd, O_CLOEXEC) >= 0;
}

// ---- The steps. Each: 0 or errno. Runs in: child, one thread, before any user code. ----

int start_session(const ChildPlan&) noexcept { return ::setsid() < 0 ? errno : 0; }

int set_stdio(const ChildPlan& plan) noexcept {
  if (::dup2(plan.null_device, STDIN_FILENO) < 0 || ::dup2(plan.stdout_pipe, STDOUT_FILENO) < 0 ||
      ::dup2(plan.stderr_pipe, STDERR_FILENO) < 0)
    return errno;
  return 0;
}

int enter_directory(const ChildPlan& plan) noexcept { return ::fchdir(plan.work) != 0 ? errno : 0; }

int drop_identity(const ChildPlan& plan) noexcept {
  int error = 0;
  if (plan.drop_to && plan.in_user_namespace) {
    error = jail::take_identity_inside({plan.drop_to->uid, plan.drop_to->gid});
  } else if (plan.drop_to) {
    error = drop_root_privileges(plan.drop_to->uid, plan.drop_to->gid);
  }
  if (error != 0) return error;
  if (sys::raw::capset_none() != 0) return errno;  // those of a user namespace of our own
  // The change of identity made /proc/self root's; code that runs as an ordinary user expects to
  // read its own. What could read us by this is in our own Landlock domain, or us.
  return ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0 ? errno : 0;
}

int forbid_new_privileges(const ChildPlan&) noexcept {
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? errno : 0;
}

int enter_landlock(const ChildPlan& plan) noexcept {
  return plan.ruleset < 0 ? 0 : jail::restrict_self(plan.ruleset);
}

int close_others(const ChildPlan&) noexcept {
  if (sys::raw::close_range(3, static_cast<unsigned>(channel_fd) - 1, 0) == 0 &&
      sys::raw::close_range(static_cast<unsigned>(channel_fd) + 1, ~0U, 0) == 0)
    return 0;
  if (errno != ENOSYS && errno != EPERM) return errno;  // EPERM: a container's filter that does not know it
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return errno;
  for (rlim_t fd = 3; fd < limit.rlim_cur; ++fd)
    if (fd != static_cast<rlim_t>(channel_fd)) ::close(static_cast<int>(fd));
  return 0;
}

int reset_signals(const ChildPlan&) noexcept {
  struct sigaction by_default{};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &by_default, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  return ::sigprocmask(SIG_SETMASK, &none, nullptr) != 0 ? errno : 0;
}

struct Step {
  Stage stage;
  int (*run)(const ChildPlan&) noexcept;
};

constexpr Step kSteps[] = {
    {Stage::kSession, start_session},
    {Stage::kStdio, set_stdio},
    {Stage::kDirectory, enter_directory},       // before kIdentity: root may enter, whoever owns the way
    // Stage::kNamespaces: those of the slot were entered by its keeper.
    {Stage::kIdentity, drop_identity},          // before kNoNewPrivs would not matter; before kLandlock
    {Stage::kNoNewPrivs, forbid_new_privileges},  // landlock_restrict_self asks for it
    {Stage::kLandlock, enter_landlock},
    {Stage::kDescriptors, close_others},        // after kLandlock, which needs its ruleset
    {Stage::kSignals, reset_signals},
};

// ---- The request's own limits. ----

constexpr long kNanosecondsInASecond = 1'000'000'000;

// RLIMIT_CPU counts whole seconds; a fraction gets a timer of this process's CPU clock. User code
// that finds and deletes it still has the rlimit above.
int limit_cpu_fraction(double seconds) {
  if (seconds == std::floor(seconds)) return 0;
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  timer_t timer{};
  if (::timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) != 0) return errno;
  const double end = seconds + static_cast<double>(used.tv_sec) +
                     static_cast<double>(used.tv_nsec) / static_cast<double>(kNanosecondsInASecond);
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(end);
  when.it_value.tv_nsec = static_cast<long>((end - std::floor(end)) * kNanosecondsInASecond);
  return ::timer_settime(timer, TIMER_ABSTIME, &when, nullptr) != 0 ? errno : 0;
}

int apply_limits(const ChildPlan& plan, const Limits& limits) {
  ResourceLimits resource;
  resource.cpu_seconds = static_cast<uint64_t>(std::ceil(limits.cpu_seconds));
  resource.memory_bytes = add_to_limit(limits.memory_bytes, plan.mapped_bytes);
  if (plan.drop_to || plan.count_keeper)
    resource.process_count = add_to_limit(limits.process_count, plan.count_keeper ? 1 : 0);
  resource.open_files = limits.open_files;
  resource.file_bytes = add_to_limit(limits.file_bytes, 1);
  const int error = apply_resource_limits(resource);
  return error != 0 ? error : limit_cpu_fraction(limits.cpu_seconds);
}

// ---- Talking to the supervisor. ----

// False when there is nobody to hear it, or the code has closed the channel or put another file there.
bool tell(std::string_view frame) {
  try {
    return sys::send_all(channel_fd, frame);
  } catch (const sys::Error&) {
    return false;
  }
}

[[noreturn]] void report_set_up_failure(Stage stage, int error, std::string_view why = {}) {
  wire::SpareReady ready;
  ready.failed_stage = stage;
  ready.error_number = error;
  ready.failure = why;
  (void)tell(wire::framed(ready));  // its end tells as much
  ::_exit(1);
}

struct Received {
  wire::Request request;
  sys::UniqueFd stdin_file;
};

Received receive_request_or_exit() {
  wire::FrameReader reader;
  std::vector<sys::UniqueFd> fds;
  for (;;) {
    if (const auto frame = reader.next()) {
      auto request = wire::message_in<wire::Request>(*frame);
      if (!request) ::_exit(1);
      return {std::move(*request), fds.empty() ? sys::UniqueFd() : std::move(fds.front())};
    }
    if (!reader.error().empty() ||
        sys::receive(channel_fd, reader.buffer(), &fds, true) == sys::Received::kEnd)
      ::_exit(0);  // nobody asks any more
  }
}

}  // namespace

void run_child(const ChildPlan& plan) {
  if (!place_channel(plan.channel)) ::_exit(1);
  for (const Step& step : kSteps)
    if (const int error = step.run(plan); error != 0) report_set_up_failure(step.stage, error);

  PyOS_AfterFork_Child();
  Interpreter& interpreter = *plan.interpreter;
  const bool warm = plan.warm_up == wire::WarmUp::kYes;
  python::run_fork_hooks(interpreter.fork_hooks,
                         warm ? python::HookSet::kAll : python::HookSet::kUnknownOnly);
  if (warm) python::warm_up(interpreter.captured, interpreter.extensions, channel_fd);
  // After the warm-up, which draws from the random state, too.
  if (const std::string why = python::settle(interpreter.captured, interpreter.shared_state); !why.empty())
    report_set_up_failure(Stage::kWarmUp, 0, why);
  (void)tell(wire::framed(wire::SpareReady{}));  // who is gone sends no request either

  Received received = receive_request_or_exit();
  python::set_sigsegv_hint_fd(channel_fd);
  wire::Request& request = received.request;
  if (received.stdin_file) ::dup2(received.stdin_file.get(), STDIN_FILENO);
  received.stdin_file.reset();
  if (request.environment)
    for (const auto& [name, value] : *plan.private_environment) request.environment->emplace(name, value);

  wire::Report report;
  if (const int error = apply_limits(plan, request.limits); error != 0) {
    report.status = wire::ReportStatus::kInternal;
    report.message = "the child could not be set up: stage " + std::string(policy::stage_name(Stage::kLimits)) +
                     ": " + std::strerror(error);
  } else {
    const python::CallPlace place{plan.place->work(), plan.place->tmp(), ::getpid()};
    report = python::run_call(interpreter.captured, interpreter.extensions, request, place);
  }
  ::_exit(tell(wire::framed(report)) ? 0 : 1);
}

}  // namespace pyplaypen::zygote
