// Creating namespaces and making them fit to live in.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "pyplaypen/namespaces.h"

namespace pyplaypen::jail {

// For clone and unshare (CLONE_NEW*).
int clone_flags(Namespaces set) noexcept;

struct IdPair {
  uint32_t inside = 0;
  uint32_t outside = 0;
  bool operator==(const IdPair&) const = default;
};

// Of a user namespace. The first of each is who the payload is.
struct IdMaps {
  std::vector<IdPair> users;
  std::vector<IdPair> groups;
  // One that is there already, on either side, stays as it is.
  void add(IdPair user, IdPair group);
};

// `user` and `group` outside, as `to` says inside.
IdMaps make_maps(MapTo to, uid_t user, gid_t group);

// Writes them for `process`, which has just got a user namespace of its own and waits. Runs in: its
// parent, since some kernels refuse a process its own. More than the writer's own IDs need CAP_SETUID
// and CAP_SETGID. 0 or errno.
int write_maps(pid_t process, const IdMaps& maps);

// What new namespaces are to be like.
struct Inside {
  Namespaces namespaces;
  std::string hostname;  // with kUts; empty: as outside
  ProcMount proc = ProcMount::kAuto;  // with kMount and kPid; otherwise nothing is mounted
  Strictness strictness = Strictness::kLenient;  // of hostname and proc
};

// What could not be had under kLenient: errno, or 0.
struct Gaps {
  int hostname = 0;
  int proc = 0;
};

struct Settled {
  int error = 0;  // errno
  const char* at = "";
  Gaps gaps;
};

// Runs in: the first process in them, before it restricts itself. Async-signal-safe.
Settled settle(const Inside& inside) noexcept;

// Parts of that. Run in the namespace, by one who has the capabilities there. Async-signal-safe. 0 or errno.
int set_host_name(const char* name, size_t size) noexcept;
int raise_loopback() noexcept;

// CAP_SYS_ADMIN: the other namespaces need no user namespace around them.
bool can_create_without_user();

}  // namespace pyplaypen::jail
