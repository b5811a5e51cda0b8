#include "runtime/sys/signals.h"

#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/sys/error.h"

namespace pyplaypen::sys {
namespace {

bool ignored(int number) {
  struct sigaction action{};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

AllSignalsBlocked::AllSignalsBlocked() {
  constexpr uint64_t kAll = ~uint64_t{0};
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &kAll, &before_, sizeof before_);
}

AllSignalsBlocked::~AllSignalsBlocked() {
  const int saved = errno;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
  errno = saved;
}

SignalFd::SignalFd(std::initializer_list<int> numbers) {
  sigset_t wanted;
  sigemptyset(&wanted);
  // Blocked, an ignored signal would be queued and read all the same.
  for (const int number : numbers)
    if (!ignored(number)) sigaddset(&wanted, number);
  fd_.reset(check(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"));
  check(::sigprocmask(SIG_BLOCK, &wanted, &before_), "sigprocmask");
}

SignalFd::~SignalFd() { (void)::sigprocmask(SIG_SETMASK, &before_, nullptr); }

std::optional<int> SignalFd::take() {
  signalfd_siginfo info{};
  const ssize_t got = retry_eintr([&] { return ::read(fd_.get(), &info, sizeof info); });
  if (got < 0 && errno == EAGAIN) return std::nullopt;
  check(got, "read", "signalfd");
  return static_cast<int>(info.ssi_signo);
}

}  // namespace pyplaypen::sys
