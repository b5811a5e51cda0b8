#include "pyplaypen/privilege.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/jail/landlock.h"
#include "runtime/sys/raw.h"
#include "runtime/sys/unique_fd.h"

namespace pyplaypen {
namespace {

int set_limit(__rlimit_resource resource, uint64_t soft, uint64_t hard) noexcept {
  const rlimit limit{soft, hard};
  return ::setrlimit(resource, &limit) == 0 ? 0 : errno;
}

int set_limit(__rlimit_resource resource, const std::optional<uint64_t>& value) noexcept {
  return value ? set_limit(resource, *value, *value) : 0;
}

// One second apart, so that a process that catches SIGXCPU can still say so before SIGKILL.
int set_cpu_limit(const std::optional<uint64_t>& seconds) noexcept {
  if (!seconds) return 0;
  const uint64_t hard = *seconds >= RLIM_INFINITY - 1 ? RLIM_INFINITY : *seconds + 1;
  return set_limit(RLIMIT_CPU, *seconds, hard);
}

bool is_root() noexcept {
  uid_t real = 0;
  uid_t effective = 0;
  uid_t saved = 0;
  (void)::getresuid(&real, &effective, &saved);  // fails for bad pointers only
  return real == 0 || effective == 0 || saved == 0;
}

bool all_are(uid_t uid, gid_t gid) noexcept {
  uid_t uids[3] = {};
  gid_t gids[3] = {};
  if (::getresuid(&uids[0], &uids[1], &uids[2]) != 0) return false;
  if (::getresgid(&gids[0], &gids[1], &gids[2]) != 0) return false;
  for (const uid_t found : uids)
    if (found != uid) return false;
  for (const gid_t found : gids)
    if (found != gid) return false;
  return ::getgroups(0, nullptr) == 0;
}

}  // namespace

int apply_resource_limits(const ResourceLimits& limits) noexcept {
  if (!limits.core_dumps)
    if (const int error = set_limit(RLIMIT_CORE, 0, 0)) return error;
  if (const int error = set_limit(RLIMIT_FSIZE, limits.file_bytes)) return error;
  if (const int error = set_limit(RLIMIT_NOFILE, limits.open_files)) return error;
  if (const int error = set_limit(RLIMIT_NPROC, limits.process_count)) return error;
  if (const int error = set_limit(RLIMIT_AS, limits.memory_bytes)) return error;
  return set_cpu_limit(limits.cpu_seconds);
}

int drop_root_privileges(uid_t uid, gid_t gid) noexcept {
  if (!is_root()) return 0;
  if (uid == 0) return EINVAL;
  if (sys::raw::setgroups(0, nullptr) != 0) return errno;
  if (sys::raw::setresgid(gid, gid, gid) != 0) return errno;
  if (sys::raw::setresuid(uid, uid, uid) != 0) return errno;
  // The kernel clears what root's UID gave; this also covers SECBIT_KEEP_CAPS and inheritable ones.
  if (sys::raw::capset_none() != 0) return errno;
  if (!all_are(uid, gid) || sys::raw::setresuid(0, 0, 0) == 0) return EPERM;
  return 0;
}

int confine_writes(const char* const* paths, size_t count) noexcept {
  int fd = -1;
  if (const int error = jail::create_write_ruleset(paths, count, landlock_abi(), &fd)) return error;
  const sys::UniqueFd ruleset(fd);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  return jail::restrict_self(ruleset.get());
}

}  // namespace pyplaypen
