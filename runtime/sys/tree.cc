#include "runtime/sys/tree.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "runtime/sys/error.h"
#include "runtime/sys/proc.h"

namespace pyplaypen::sys {
namespace {

std::vector<pid_t> children_but(std::span<const pid_t> spared) {
  std::vector<pid_t> found = children();
  std::erase_if(found, [&](pid_t pid) { return std::ranges::count(spared, pid) > 0; });
  return found;
}

// All descendants that can be seen now, parents before children, without those of `spared`.
std::vector<pid_t> descendants(std::span<const pid_t> spared) {
  std::vector<pid_t> found = children_but(spared);
  for (size_t i = 0; i < found.size(); ++i)
    for (const pid_t child : children_of(found[i])) found.push_back(child);
  return found;
}

// Stops all of the tree first: a stopped process cannot fork, so that a second look finds what the
// first one missed. Then kills it. What was forked in between is found by the caller's next round.
void kill_by_walk(std::span<const pid_t> spared = {}) {
  for (size_t seen = 0;;) {
    const std::vector<pid_t> found = descendants(spared);
    for (const pid_t pid : found) ::kill(pid, SIGSTOP);
    if (found.size() <= seen) break;
    seen = found.size();
  }
  for (const pid_t pid : descendants(spared)) ::kill(pid, SIGKILL);
}

// Kills and reaps the leader alone. What it had started is our child by the time it can be reaped, so
// that ECHILD after it means that there was nothing.
void end_leader(pid_t leader, TreeEnd& end) {
  ::kill(leader, SIGKILL);
  if (retry_eintr([&] { return ::wait4(leader, &end.leader_status, __WALL, &end.leader_usage); }) != leader)
    return;
  end.leader_seen = true;
  ++end.processes;
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

}  // namespace

TreeEnd end_tree(pid_t leader, KillAll reach) {
  TreeEnd end;
  // Most calls have started nothing: kill(-1) looks at every process of the system (90 us here).
  if (leader > 0 && reach == KillAll::kReachesDescendantsOnly) {
    end_leader(leader, end);
    if (!has_children()) return end;
  }
  for (;;) {
    if (reach == KillAll::kReachesDescendantsOnly) {
      // Under the kernel's process list lock: whatever forks meanwhile has the signal pending
      // already and its fork fails (copy_process, kernel/fork.c).
      ::kill(-1, SIGKILL);
    } else {
      kill_by_walk();
    }
    int status = 0;
    rusage usage{};
    const pid_t pid = retry_eintr([&] { return ::wait4(-1, &status, __WALL, &usage); });
    if (pid < 0) return end;  // ECHILD
    ++end.processes;
    if (pid == leader) {
      end.leader_seen = true;
      end.leader_status = status;
      end.leader_usage = usage;
    }
  }
}

void end_others(std::span<const pid_t> spared) {
  for (;;) {
    const std::vector<pid_t> found = children_but(spared);
    if (found.empty()) return;
    kill_by_walk(spared);
    for (const pid_t pid : found) (void)retry_eintr([&] { return ::waitpid(pid, nullptr, __WALL); });
  }
}

void reap_orphans(pid_t leader) {
  // Not by looking them up first: /proc may show the PIDs of another namespace.
  for (siginfo_t info{};; info = {}) {
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 || info.si_pid == 0) return;
    if (info.si_pid == leader) break;  // and perhaps others behind it
    ::waitpid(info.si_pid, nullptr, WNOHANG | __WALL);
  }
  for (const pid_t pid : children())
    if (pid != leader) ::waitpid(pid, nullptr, WNOHANG | __WALL);
}

}  // namespace pyplaypen::sys
