#include "cli/first_process.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "cli/exit_codes.h"

namespace pyplaypen::cli {
namespace {

// For what a killed command leaves: its zygote then removes its workspaces, which takes some ms. With our
// exit the kernel ends everything in the container.
constexpr time_t kFarewellSeconds = 2;

int exit_status(int status) { return WIFSIGNALED(status) ? kExitSignalBase + WTERMSIG(status) : WEXITSTATUS(status); }

// The status of `command` when it is among those that have ended.
std::optional<int> reap(pid_t command) {
  std::optional<int> ended;
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;)
    if (pid == command) ended = status;
  return ended;
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void wait_for_the_rest() {
  sigset_t child_ended;
  ::sigemptyset(&child_ended);
  ::sigaddset(&child_ended, SIGCHLD);
  const timespec patience{kFarewellSeconds, 0};
  while (has_children() && ::sigtimedwait(&child_ended, nullptr, &patience) > 0) (void)reap(0);
}

int mind(pid_t command, const sigset_t& all) {
  for (;;) {
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&all, &info);
    if (signal < 0) continue;  // stopped and continued
    if (signal == SIGCHLD) {
      if (const auto status = reap(command)) {
        wait_for_the_rest();
        return exit_status(*status);
      }
    } else if (info.si_code != SI_KERNEL) {  // the terminal's go to the whole group already
      ::kill(command, signal);
    }
  }
}

}  // namespace

std::optional<int> mind_if_first_process() {
  if (::getpid() != 1) return std::nullopt;
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  ::signal(SIGCHLD, SIG_DFL);  // ignored, it would have the kernel reap, and tell nobody how it ended
  const pid_t command = ::fork();
  if (command < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (command > 0) return mind(command, all);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return std::nullopt;
}

}  // namespace pyplaypen::cli
