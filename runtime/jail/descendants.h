// The processes that descend from this one: makes them ours for good, and ends them all.
#pragma once

#include <sys/types.h>

#include <vector>

namespace pyplaypen::jail {

// How this process tells its descendants from everybody else's.
enum class Reach {
  kScope,  // a Landlock domain with scoped signals: kill(-1) reaches them and nobody else
  kWalk,   // as their subreaper: each orphan becomes a child of ours
};

// Owns the descendants of a single-threaded process that waits for nothing else: a command, a keeper.
class Descendants {
 public:
  // Makes this process the subreaper of its descendants and, from Landlock ABI 6, confines its own
  // signals to them; both cannot be undone and come before the first child. no_new_privs is set in
  // that case. Pass landlock_abi(), or less to act as an older kernel does. `confines_writes`: a child
  // will get a write set. Children that are there already (a shell's that exec'd us) are never
  // touched. Throws sys::Error, std::runtime_error where neither way is open.
  Descendants(int landlock_abi, bool confines_writes);

  [[nodiscard]] Reach reach() const { return reach_; }

  // Kills and reaps until there are none: daemons in a session of their own, stopped ones, ignorers of
  // SIGTERM and fork bombs alike. Needs CAP_KILL where they run under another UID.
  void kill_all() const;

 private:
  [[nodiscard]] std::vector<pid_t> children() const;
  [[nodiscard]] bool any_left() const;

  Reach reach_ = Reach::kWalk;
  std::vector<pid_t> foreign_;  // children from before
};

}  // namespace pyplaypen::jail
