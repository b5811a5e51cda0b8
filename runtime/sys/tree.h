// Ends every descendant of the calling process. The caller must be a child subreaper (man 2 prctl),
// so that what loses its parent becomes its own child, and must have no other children.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <span>

namespace pyplaypen::sys {

// How far kill(-1, SIGKILL) of the calling process reaches.
enum class KillAll {
  kReachesDescendantsOnly,  // it is in a Landlock domain with signal scope (ABI 6)
  kReachesOthers,           // never used then; descendants are looked up in /proc instead
};

struct TreeEnd {
  int leader_status = 0;    // man 2 wait; 0 when the leader was not among them
  bool leader_seen = false;
  rusage leader_usage{};    // of the leader and of what it had waited for
  uint32_t processes = 0;   // reaped here
};

// Kills and reaps until there is no child left (ECHILD). `leader` may be running, dead or 0. Blocks
// while a process is in an uninterruptible sleep.
TreeEnd end_tree(pid_t leader, KillAll reach);

// Kills and reaps all children but those in `spared`, and what descends from them, by looking them up in
// /proc. For a subreaper that has other children to keep.
void end_others(std::span<const pid_t> spared);

// Reaps children that have ended, `leader` excepted: it stays a zombie, so that its PID cannot be
// taken by another before end_tree.
void reap_orphans(pid_t leader);

}  // namespace pyplaypen::sys
