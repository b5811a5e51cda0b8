#include "runtime/jail/minder.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>
#include <stdexcept>
#include <system_error>

#include "runtime/jail/landlock.h"
#include "runtime/sys/bare.h"
#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"
#include "runtime/sys/proc.h"
#include "runtime/sys/raw.h"
#include "runtime/sys/sanitizers.h"
#include "runtime/sys/signals.h"

// The minder shares the memory of the process that starts it, and the thread-local storage of the
// thread that does (sys::SharingChild). Two reasons. A fork of that thread must be libc's fork(3), which
// alone leaves malloc and stdio usable when other threads held their locks; and fork(3) makes children
// that raise SIGCHLD, in the minder instead of in the host. And what a big host has mapped need not be
// copied for a small command.
//
// So its life has three parts, and a byte on the control socket stands between each:
//   wait      the host writes the maps; the minder makes one bare read
//   set up    the minder uses libc; the host makes one bare read, all its signals blocked
//   mind      the host goes on; the minder makes bare calls only, on its own stack
namespace pyplaypen::jail {
namespace {

using policy::Stage;
using sys::address;
using sys::bare_call;

constexpr int kFailed = 125;

// Where the minder keeps its few descriptors once it is set up; all others are closed.
constexpr int kControl = 0;
constexpr int kChildEnded = 1;
constexpr int kHost = 2;      // a pidfd: forked copies of the host may hold its end of the control
constexpr int kChildren = 3;  // /proc/thread-self/children

// The callable's copy of us shares this with the host, and nothing else. It runs user code: what it
// wrote is read as what a stranger says.
struct FromCallable {
  SetupReport failure;
  bool escaped;
  int error_number;
  uint32_t message_size;
  char message[2048];
};

class SharedPage {
 public:
  SharedPage()
      : base_(::mmap(nullptr, sizeof(FromCallable), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (base_ == MAP_FAILED) sys::throw_errno("mmap", "shared page");
    new (base_) FromCallable{};
  }
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;
  ~SharedPage() { ::munmap(base_, sizeof(FromCallable)); }
  [[nodiscard]] FromCallable& operator*() const { return *static_cast<FromCallable*>(base_); }

 private:
  void* base_;
};

}  // namespace

struct Minder::Shared {
  explicit Shared(const MinderPlan& p) : plan(&p), namespaces(p.inside.namespaces) {
    if (p.callable) page = std::make_unique<SharedPage>();
  }

  const MinderPlan* plan;  // valid during set-up only
  Namespaces namespaces;
  int control = -1;
  int hosts_end = -1;
  int host_pidfd = -1;
  bool refused = false;
  SetupReport failure;
  const char* failed_at = "";
  Gaps gaps;
  pid_t payload = 0;
  std::unique_ptr<SharedPage> page;
  // Where the callable's copy goes on: in the frame of the thread that waits for the minder, so that it
  // runs on that thread's stack, whose bounds libraries and sanitizers know.
  ucontext_t caller{};
  int child_ended = -1;
  bool is_copy = false;
  // Written while the minder minds, read by the host after its end.
  bool ended = false;
  bool of_itself = false;  // before its tree was killed
  siginfo_t info{};
  rusage usage{};
  rusage all{};
};

namespace {

using Shared = Minder::Shared;

// ---- Minding: bare calls only. Runs in: minder. ----

bool in_pid_namespace(const Shared& shared) { return shared.namespaces.contains(Namespace::kPid); }

// One child that has ended, or that ends while we wait; false when there is none (ECHILD, or not yet).
bool reap_one(Shared& shared, int options) {
  siginfo_t info;
  info.si_pid = 0;
  rusage usage;
  long result = 0;
  do {
    result = bare_call(SYS_waitid, P_ALL, 0, address(&info), WEXITED | __WALL | options, address(&usage));
  } while (result == -EINTR);
  if (result != 0 || info.si_pid == 0) return false;
  if (info.si_pid == shared.payload && !shared.ended) {
    shared.ended = true;
    shared.info = info;
    shared.usage = usage;
  }
  return true;
}

void kill_listed_children() {
  char text[512] = {};
  const long got = bare_call(SYS_pread64, kChildren, address(text), sizeof text, 0);
  long pid = 0;
  for (long at = 0; at < got; ++at) {
    if (text[at] >= '0' && text[at] <= '9') {
      pid = pid * 10 + (text[at] - '0');
    } else if (pid > 0) {
      bare_call(SYS_kill, pid, SIGKILL);
      pid = 0;
    }
  }
}

// As pid 1 or in a signal scope, kill(-1) reaches our descendants and nobody else; under the kernel's
// process list lock, so that a fork meanwhile fails. Otherwise each orphan becomes our child.
void end_tree(Shared& shared, bool contained) {
  do {
    contained ? static_cast<void>(bare_call(SYS_kill, -1, SIGKILL)) : kill_listed_children();
  } while (reap_one(shared, 0));
}

void pass_on_signal(const Shared& shared, int number) {
  if (bare_call(SYS_kill, -shared.payload, number) != 0) bare_call(SYS_kill, shared.payload, number);
}

void mind(Shared& shared, bool contained) {
  while (!shared.ended) {
    pollfd events[] = {{kControl, POLLIN, 0}, {kChildEnded, POLLIN, 0}, {kHost, POLLIN, 0}};
    if (bare_call(SYS_ppoll, address(events), 3, 0, 0) < 0) continue;
    if (events[1].revents != 0) {
      signalfd_siginfo drained[4];
      while (bare_call(SYS_read, kChildEnded, address(drained), sizeof drained) > 0) {
      }
      while (!shared.ended && reap_one(shared, WNOHANG)) {
      }
    }
    if ((events[2].revents & POLLIN) != 0) break;  // not POLLNVAL: the kernel gave us no pidfd
    if (events[0].revents != 0 && !shared.ended) {
      unsigned char number = 0;
      if (bare_call(SYS_read, kControl, address(&number), 1) <= 0) break;
      pass_on_signal(shared, number);
    }
  }
  shared.of_itself = shared.ended;
  end_tree(shared, contained);
  bare_call(SYS_getrusage, RUSAGE_CHILDREN, address(&shared.all));
  const char byte = 1;
  bare_call(SYS_write, kControl, address(&byte), 1);
}

// ---- Setting up: libc, on the host's memory, while the host stands still. Runs in: minder. ----

// 0 or errno.
int become_reaper(Shared& shared, int& child_ended, int& children) {
  struct sigaction by_default{};
  by_default.sa_handler = SIG_DFL;  // ignored, it would have the kernel reap them
  if (::sigaction(SIGCHLD, &by_default, nullptr) != 0) return errno;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  child_ended = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (child_ended < 0) return errno;
  if (in_pid_namespace(shared)) return 0;
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return errno;
  if (shared.plan->signal_scope >= 0) {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    return restrict_self(shared.plan->signal_scope);
  }
  children = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  return children >= 0 ? 0 : errno;
}

void tell(FromCallable& to, int error_number, const char* message) {
  to.escaped = true;
  to.error_number = error_number;
  to.message_size = static_cast<uint32_t>(std::min(std::strlen(message), sizeof to.message));
  std::memcpy(to.message, message, to.message_size);
}

int call_and_tell(const std::function<int()>& callable, FromCallable& to) {
  try {
    return callable();
  } catch (const std::system_error& error) {
    const bool is_errno = error.code().category() == std::generic_category() ||
                          error.code().category() == std::system_category();
    tell(to, is_errno ? error.code().value() : 0, error.what());
  } catch (const std::exception& error) {
    tell(to, 0, error.what());
  } catch (...) {
    tell(to, 0, "an exception that is no std::exception");
  }
  return 1;
}

// Runs in: the callable's process, a copy of the host made by fork(3).
[[noreturn]] void run_callable(const Shared& shared) {
  const MinderPlan& minder = *shared.plan;
  FromCallable& to = **shared.page;
  for (const int fd : {shared.control, shared.host_pidfd, shared.child_ended})
    if (fd >= 0) ::close(fd);
  Plan plan = minder.payload;
  plan.program = nullptr;
  plan.descriptors = Others::kKept;
  if (plan.limits.memory_bytes) *plan.limits.memory_bytes += sys::mapped_bytes();
  to.failure = run_steps(plan);
  if (to.failure.error != 0) ::_exit(kFailed);
  for (const int fd : minder.not_for_callable)
    if (fd > STDERR_FILENO) ::close(fd);
  const int status = call_and_tell(minder.callable, to);
  std::cout.flush();
  std::clog.flush();
  std::fflush(nullptr);
  ::_exit(status);
}

// 0 or errno; a payload that was started and could not be set up is reaped already.
SetupReport start_payload(Shared& shared) {
  const MinderPlan& plan = *shared.plan;
  if (!plan.callable) {
    Launch launched = launch(plan.payload);
    shared.payload = launched.child.release();
    return launched.failure;
  }
  shared.payload = ::fork();
  if (shared.payload == 0) {
    shared.is_copy = true;
    ::setcontext(&shared.caller);
    ::_exit(kFailed);
  }
  return {Stage::kSession, shared.payload < 0 ? errno : 0};
}

SetupReport set_up(Shared& shared) {
  int child_ended = -1;
  int children = -1;
  const Settled settled = settle(shared.plan->inside);
  shared.gaps = settled.gaps;
  shared.failed_at = settled.at;
  if (settled.error != 0) return {Stage::kNamespaces, settled.error};
  shared.failed_at = "reaper";
  if (const int error = become_reaper(shared, child_ended, children)) return {Stage::kNamespaces, error};
  shared.child_ended = child_ended;
  const SetupReport report = start_payload(shared);
  if (report.error != 0) return report;
  // First out of the way of the numbers that they get.
  const std::array from = {shared.control, child_ended, shared.host_pidfd, children};
  std::array<int, from.size()> high{};
  for (size_t i = 0; i < from.size(); ++i)
    high[i] = from[i] < 0 ? -1 : ::fcntl(from[i], F_DUPFD_CLOEXEC, static_cast<int>(from.size()));
  for (size_t i = 0; i < from.size(); ++i) {
    const int number = static_cast<int>(i);
    high[i] < 0 ? ::close(number) : ::dup2(high[i], number);
  }
  return {Stage::kDescriptors, close_descriptors_from(static_cast<int>(from.size()))};
}

int minder_main(void* argument) {
  Shared& shared = *static_cast<Shared*>(argument);
  char byte = 0;
  bare_call(SYS_close, shared.hosts_end);
  long got = 0;
  do {
    got = bare_call(SYS_read, shared.control, address(&byte), 1);
  } while (got == -EINTR);
  if (got != 1) return kFailed;

  try {
    shared.failure = set_up(shared);
  } catch (const sys::Error& error) {
    shared.failure = {Stage::kSession, error.code().value()};
  } catch (const std::exception&) {
    shared.failure = {Stage::kSession, ENOMEM};
  }
  const bool contained = in_pid_namespace(shared) || shared.plan->signal_scope >= 0;
  if (shared.failure.error != 0) {
    if (shared.payload > 0) end_tree(shared, contained);
    return kFailed;  // the end of the control is the answer
  }
  bare_call(SYS_write, kControl, address(&byte), 1);
  mind(shared, contained);
  return 0;
}

}  // namespace

Minder::Minder(const MinderPlan& plan) : shared_(std::make_unique<Shared>(plan)) {
  constexpr size_t kStackSize = 256 << 10;
  auto [ours, theirs] = sys::socket_pair();
  control_ = std::move(ours);
  const sys::UniqueFd host(sys::raw::pidfd_open(::getpid(), 0));
  shared_->control = theirs.get();
  shared_->hosts_end = control_.get();
  shared_->host_pidfd = host.get();
  // Written now, or the copy would have it in its buffers, too, and write it again.
  if (plan.callable) {
    std::cout.flush();
    std::clog.flush();
    std::fflush(nullptr);
  }
  const sys::AllSignalsBlocked blocked;
  // Comes back a second time, in the callable's copy: this frame is whole there, since we stand still
  // in it below when the copy is made.
  if (plan.callable) ::getcontext(&shared_->caller);
  if (shared_->is_copy) run_callable(*shared_);
  const int error =
      child_.try_start(minder_main, shared_.get(), clone_flags(plan.inside.namespaces), kStackSize);
  if (error != 0) {
    refuse(error, "clone");
    return;
  }
  theirs.reset();
  if (plan.inside.namespaces.contains(Namespace::kUser)) {
    if (const int unmapped = write_maps(child_.pid(), plan.maps)) {
      child_.kill_and_reap();
      refuse(unmapped, "uid_map");
      return;
    }
  }
  char byte = 1;
  const int fd = control_.get();
  long got = bare_call(SYS_write, fd, address(&byte), 1);
  while (got == 1 || got == -EINTR) {
    got = bare_call(SYS_read, fd, address(&byte), 1);
    if (got != -EINTR) break;
  }
  if (got == 1) return;
  (void)child_.wait();
  if (shared_->failure.error == 0) throw sys::Error(ECHILD, "clone", "the minder was killed");
}

Minder::~Minder() {
  if (child_.pid() == 0) return;
  stop();
  (void)child_.wait();
}

void Minder::refuse(int error, const char* what) {
  shared_->refused = true;
  shared_->failure = {Stage::kNamespaces, error};
  shared_->failed_at = what;
}

bool Minder::refused() const { return shared_->refused; }
SetupReport Minder::failure() const { return shared_->failure; }
std::string Minder::failed_at() const { return shared_->failed_at; }
Gaps Minder::gaps() const { return shared_->gaps; }

void Minder::pass_on(int signal) {
  const auto byte = static_cast<unsigned char>(signal);
  (void)::send(control_.get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);  // it may have ended
}

void Minder::stop() {
  // Not a close: forked copies of this process may hold this end, too.
  (void)::shutdown(control_.get(), SHUT_WR);
}

MinderEnd Minder::wait() {
  (void)child_.wait();
  return end();
}

MinderEnd Minder::leave() {
  char byte = 0;
  (void)sys::retry_eintr([&] { return ::read(control_.get(), &byte, 1); });  // its end is as good
  child_.abandon();
  MinderEnd last = end();
  sys::tell_of_leak(shared_.release());
  return last;
}

MinderEnd Minder::end() const {
  MinderEnd end;
  end.all = shared_->all;
  end.usage = shared_->usage;
  if (shared_->of_itself) {
    const siginfo_t& info = shared_->info;
    end.status = info.si_code == CLD_EXITED ? info.si_status << 8
                                            : info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0);
  }
  if (shared_->page) {
    const FromCallable& said = **shared_->page;
    end.failure = said.failure;
    if (said.escaped)
      end.escaped = Escaped{said.error_number,
                            std::string(said.message, std::min<size_t>(said.message_size, sizeof said.message))};
  }
  return end;
}

}  // namespace pyplaypen::jail
