#include "runtime/sys/child.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstdint>

#include "runtime/sys/error.h"
#include "runtime/sys/raw.h"

namespace pyplaypen::sys {
namespace {

constexpr size_t kStackSize = 65536;

// Not on the caller's stack: a sanitizer marks the gaps between a function's variables.
class Stack {
 public:
  Stack()
      : base_(::mmap(nullptr, kStackSize, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0)) {
    if (base_ == MAP_FAILED) throw_errno("mmap", "stack of a child");
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  ~Stack() { ::munmap(base_, kStackSize); }
  [[nodiscard]] void* top() const { return static_cast<char*>(base_) + kStackSize; }

 private:
  void* base_;
};

// libc's function leaves out the signals that it uses itself (man 7 nptl); a handler of theirs would
// run in the child on the parent's memory.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    constexpr uint64_t kAll = ~uint64_t{0};
    ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &kAll, &before_, sizeof before_);
  }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;
  ~AllSignalsBlocked() {
    const int saved = errno;
    ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
    errno = saved;
  }

 private:
  uint64_t before_ = 0;
};

}  // namespace

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    kill_and_reap();
    pid_ = std::exchange(other.pid_, 0);
    pidfd_ = std::move(other.pidfd_);
  }
  return *this;
}

bool Child::signal(int number) noexcept {
  if (pid_ == 0) return false;
  if (pidfd_ && raw::pidfd_send_signal(pidfd_.get(), number) == 0) return true;
  // The pid is ours until we reap it, so this reaches the same process where pidfds are denied.
  return (!pidfd_ || errno == ENOSYS) && ::kill(pid_, number) == 0;
}

std::optional<ChildExit> Child::wait_with(int options) {
  ChildExit ended;
  const pid_t got = check(
      retry_eintr([&] { return ::wait4(pid_, &ended.status, options | __WALL, &ended.usage); }),
      "wait4");
  if (got == 0) return std::nullopt;
  pid_ = 0;
  pidfd_.reset();
  return ended;
}

std::optional<ChildExit> Child::try_wait() { return wait_with(WNOHANG); }

ChildExit Child::wait() { return *wait_with(0); }

void Child::kill_and_reap() noexcept {
  if (pid_ == 0) return;
  signal(SIGKILL);
  // Fails only where somebody broke the rule and reaped it already.
  (void)retry_eintr([&] { return ::wait4(pid_, nullptr, __WALL, nullptr); });
  pid_ = 0;
  pidfd_.reset();
}

Child start_sharing_memory(int (*body)(void*), void* argument, int exit_signal) {
  const Stack stack;
  const AllSignalsBlocked blocked;
  const int flags = CLONE_VM | CLONE_VFORK | exit_signal;
  int pidfd = -1;
  pid_t pid = ::clone(body, stack.top(), flags | CLONE_PIDFD, argument, &pidfd);
  if (pid < 0 && (errno == EINVAL || errno == ENOSYS))
    pid = ::clone(body, stack.top(), flags, argument);
  check(pid, "clone");
  return {pid, UniqueFd(pidfd)};
}

}  // namespace pyplaypen::sys
