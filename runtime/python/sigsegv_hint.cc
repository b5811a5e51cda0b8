#include "runtime/python/sigsegv_hint.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>

#include "runtime/sys/error.h"

namespace pyplaypen::python {
namespace {

constexpr size_t kStackBytes = size_t{64} << 10;
// A frame that crosses the end of the stack touches it at most this far from the stack pointer.
constexpr uintptr_t kReach = uintptr_t{1} << 20;

// A signal handler can be given nothing but what is static.
std::atomic<int> hint_fd{-1};
static_assert(std::atomic<int>::is_always_lock_free);

uintptr_t stack_pointer(const ucontext_t& context) {
#if defined(__x86_64__)
  return static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return static_cast<uintptr_t>(context.uc_mcontext.sp);
#endif
}

void on_fault(int signal, siginfo_t* info, void* context) {
  // Back to the default first: the fault comes again when this returns, and ends the process.
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
  if (info->si_code <= 0) {  // sent by kill(2), not by a fault: nothing would come again
    ::raise(signal);
    return;
  }
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const uintptr_t top = stack_pointer(*static_cast<ucontext_t*>(context));
  const uintptr_t distance = address > top ? address - top : top - address;
  const int fd = hint_fd.load(std::memory_order_relaxed);
  if (distance > kReach || fd < 0) return;
  // Lost when it cannot be written: it is a hint.
  (void)!::write(fd, &kStackOverflowHint, 1);
}

}  // namespace

void install_sigsegv_hint(int fd) {
  hint_fd.store(fd, std::memory_order_relaxed);
  void* memory = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) sys::throw_errno("mmap", "a signal stack");
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = kStackBytes;
  sys::check(::sigaltstack(&stack, nullptr), "sigaltstack");
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  sys::check(::sigaction(SIGSEGV, &action, nullptr), "sigaction", "SIGSEGV");
}

void set_sigsegv_hint_fd(int fd) noexcept { hint_fd.store(fd, std::memory_order_relaxed); }

}  // namespace pyplaypen::python
