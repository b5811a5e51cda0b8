#include "runtime/sys/child.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "runtime/sys/error.h"
#include "runtime/sys/raw.h"
#include "runtime/sys/sanitizers.h"
#include "runtime/sys/signals.h"

namespace pyplaypen::sys {
namespace {

constexpr size_t kStackSize = 65536;

}  // namespace

Stack::Stack(size_t size)
    : size_(size),
      base_(::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0)) {
  if (base_ == MAP_FAILED) throw_errno("mmap", "stack of a child");
  tell_of_new_stack(base_, size_);
}

Stack::~Stack() { ::munmap(base_, size_); }

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
  const Stack stack(kStackSize);
  const AllSignalsBlocked blocked;
  const int flags = CLONE_VM | CLONE_VFORK | exit_signal;
  int pidfd = -1;
  pid_t pid = ::clone(body, stack.top(), flags | CLONE_PIDFD, argument, &pidfd);
  if (pid < 0 && (errno == EINVAL || errno == ENOSYS))
    pid = ::clone(body, stack.top(), flags, argument);
  check(pid, "clone");
  return {pid, UniqueFd(pidfd)};
}

int SharingChild::try_start(int (*body)(void*), void* argument, int flags, size_t stack_size) {
  stack_ = std::make_unique<Stack>(stack_size);
  const AllSignalsBlocked blocked;
  pid_ = ::clone(body, stack_->top(), CLONE_VM | flags, argument);
  if (pid_ >= 0) return 0;
  pid_ = 0;
  return errno;
}

std::optional<ChildExit> SharingChild::wait() {
  if (pid_ == 0) return std::nullopt;
  ChildExit ended;
  const pid_t got = retry_eintr([&] { return ::wait4(pid_, &ended.status, __WALL, &ended.usage); });
  pid_ = 0;
  stack_.reset();
  return got < 0 ? std::nullopt : std::optional(ended);
}

void SharingChild::kill_and_reap() noexcept {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  (void)wait();
}

void SharingChild::abandon() noexcept {
  pid_ = 0;
  tell_of_leak(stack_.release());
}

}  // namespace pyplaypen::sys
