// What this kernel and this process may use, found by trying. Never assumed from a version number.
#pragma once

#include <cstdint>

namespace pyplaypen::policy {

struct Features {
  bool pidfd = false;          // pidfd_open and pidfd_send_signal (Linux 5.3)
  bool close_range = false;    // Linux 5.9
  bool children_file = false;  // /proc/<pid>/task/<tid>/children (CONFIG_PROC_CHILDREN)
  bool user_namespace = false; // unshare(CLONE_NEWUSER) with maps written by the parent
  int landlock_abi = 0;        // 0: absent or switched off; man 7 landlock
  bool can_drop_uid = false;   // effective UID 0 with CAP_SETUID and CAP_SETGID
};

// Probes once for each effective user and remembers; forks one short-lived child (for the user namespace). Thread-safe.
const Features& features();

}  // namespace pyplaypen::policy
