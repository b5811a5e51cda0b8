// Creating namespaces and making them fit to live in.
#pragma once

#include <sys/types.h>

#include <string>

#include "pyplaypen/namespaces.h"

namespace pyplaypen::jail {

// For clone and unshare (CLONE_NEW*).
int clone_flags(Namespaces set) noexcept;

// One user and one group of a user namespace, and who they are outside.
struct IdMap {
  uid_t uid_inside = 0;
  gid_t gid_inside = 0;
  uid_t uid_outside = 0;
  gid_t gid_outside = 0;
};

// `user` and `group` outside, as `to` says inside.
IdMap make_map(MapTo to, uid_t user, gid_t group);

// Writes them for `process`, which has just got a user namespace of its own and waits. Runs in: its
// parent, since some kernels refuse a process its own. `extra` (lines for uid_map and gid_map each) needs
// CAP_SETUID and CAP_SETGID. 0 or errno.
int write_maps(pid_t process, const IdMap& map, const std::string& extra_uids = {},
               const std::string& extra_gids = {});

// Both run in the namespace, by one who has the capabilities there. Async-signal-safe. 0 or errno.
int set_host_name(const char* name, size_t size) noexcept;
int raise_loopback() noexcept;

// CAP_SYS_ADMIN: the other namespaces need no user namespace around them.
bool can_create_without_user();

}  // namespace pyplaypen::jail
