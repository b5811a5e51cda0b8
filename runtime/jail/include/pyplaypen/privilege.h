// The parts that everything else is built from, for a caller's own fork and exec. Each of these may
// run between fork and exec: async-signal-safe, no allocation, no lock. Each returns 0 or an errno.
#pragma once

#include <pyplaypen/landlock.h>  // landlock_abi()
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace pyplaypen {

// Absent: left as inherited.
struct ResourceLimits {
  std::optional<uint64_t> cpu_seconds;    // s; SIGXCPU at this, SIGKILL one second later
  std::optional<uint64_t> memory_bytes;   // B of address space (RLIMIT_AS)
  std::optional<uint64_t> process_count;  // tasks of the real UID in its user namespace (RLIMIT_NPROC);
                                          // not enforced for root: drop it first or after, but drop it
  std::optional<uint64_t> open_files;     // descriptors (RLIMIT_NOFILE)
  std::optional<uint64_t> file_bytes;     // B a file (RLIMIT_FSIZE)
  bool core_dumps = false;                // false: RLIMIT_CORE 0
};

// a + b, or "no limit" where that is beyond what a limit can say.
constexpr uint64_t add_to_limit(uint64_t limit, uint64_t more) {
  return limit > UINT64_MAX - more ? UINT64_MAX : limit + more;
}

int apply_resource_limits(const ResourceLimits& limits) noexcept;

// As root (one of the three UIDs is 0): gives up all supplementary groups, then GID, then UID, all
// three of each, and every capability; checks that root cannot be taken back. EINVAL for a uid of 0.
// Not root: does nothing and returns 0. Changes the calling thread only.
int drop_root_privileges(uid_t uid, gid_t gid) noexcept;

// Landlock: from here on this thread and its descendants create, change and remove files beneath
// `paths` only. Sets no_new_privs. EOPNOTSUPP where the kernel has no Landlock. Call it last: it
// cannot be undone. chmod, chown, utime and reading are not covered, nor truncating below ABI 3 (man 7
// landlock).
int confine_writes(const char* const* paths, size_t count) noexcept;

}  // namespace pyplaypen
