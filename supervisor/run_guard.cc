#include "supervisor/run_guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runtime/jail/launch.h"
#include "runtime/sys/remove_tree.h"

namespace pyplaypen::supervisor {
namespace {

// What is killed may still finish a system call that writes.
constexpr int kTries = 1000;
constexpr int kMillisecondsBetween = 1;

// Runs in: the guard. One thread, a memory of its own.
[[noreturn]] void guard(int our_end, const std::string& tmp) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::prctl(PR_SET_NAME, "pyplaypen-guard");
  // Nothing of what the command's readers wait for, or of the directory, may stay open here.
  if (::dup2(our_end, STDIN_FILENO) < 0 || jail::close_descriptors_from(1) != 0 || ::chdir("/") != 0) ::_exit(1);
  pollfd end{STDIN_FILENO, 0, 0};
  while (::poll(&end, 1, -1) <= 0) {
  }
  ::kill(-1, SIGKILL);
  for (int i = 0; i < kTries && !sys::remove_tree(AT_FDCWD, tmp); ++i) ::poll(nullptr, 0, kMillisecondsBetween);
  ::_exit(0);
}

}  // namespace

sys::UniqueFd start_guard(const std::string& tmp) {
  // Made after the command was started: nobody has the other end but we.
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  sys::UniqueFd theirs(ends[0]);
  sys::UniqueFd ours(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ours.reset();
    guard(theirs.get(), tmp);
  }
  return pid > 0 ? std::move(ours) : sys::UniqueFd();
}

}  // namespace pyplaypen::supervisor
