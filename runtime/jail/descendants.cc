#include "runtime/jail/descendants.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "runtime/jail/landlock.h"
#include "runtime/sys/error.h"
#include "runtime/sys/proc.h"

namespace pyplaypen::jail {
namespace {

// Also when none of them has ended.
bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

// False where there is none, or no room for another (16 layers).
bool scope_own_signals(int landlock_abi, bool confines_writes) {
  const sys::UniqueFd ruleset = build_signal_scope(landlock_abi, confines_writes);
  if (!ruleset) return false;
  sys::check(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl", "PR_SET_NO_NEW_PRIVS");
  const int error = restrict_self(ruleset.get());
  if (error != 0 && error != E2BIG) throw sys::Error(error, "landlock_restrict_self");
  return error == 0;
}

}  // namespace

Descendants::Descendants(int landlock_abi, bool confines_writes) {
  sys::check(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl", "PR_SET_CHILD_SUBREAPER");
  if (scope_own_signals(landlock_abi, confines_writes)) reach_ = Reach::kScope;
  const bool listable = sys::has_children_file();
  if (reach_ == Reach::kWalk && !listable)
    throw std::runtime_error(
        "cannot tell the command's processes from others: this kernel has neither Landlock ABI 6 nor "
        "/proc/thread-self/children (CONFIG_PROC_CHILDREN)");
  if (listable && has_children()) foreign_ = sys::children();
}

std::vector<pid_t> Descendants::children() const {
  std::vector<pid_t> pids = sys::children();
  std::erase_if(pids, [&](pid_t pid) { return std::ranges::count(foreign_, pid) != 0; });
  return pids;
}

// The list may miss a child while another one ends (man 5 proc), so only ECHILD is a proof.
bool Descendants::any_left() const {
  return foreign_.empty() ? has_children() : !children().empty();
}

void Descendants::kill_all() const {
  if (reach_ == Reach::kScope) ::kill(-1, SIGKILL);
  while (any_left()) {
    // By pid, children only: their pids are ours until we reap them. What a dead one leaves behind
    // becomes our child, and a scope has signalled it already.
    if (reach_ == Reach::kScope && foreign_.empty()) {
      (void)sys::retry_eintr([] { return ::waitpid(-1, nullptr, __WALL); });
      continue;
    }
    const std::vector<pid_t> pids = children();
    for (const pid_t pid : pids) ::kill(pid, SIGKILL);
    for (const pid_t pid : pids)
      (void)sys::retry_eintr([&] { return ::waitpid(pid, nullptr, __WALL); });
  }
}

}  // namespace pyplaypen::jail
