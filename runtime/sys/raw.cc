#include "runtime/sys/raw.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyplaypen::sys::raw {

// The numbers are the same on every architecture (include/uapi/asm-generic/unistd.h); older libc
// headers lack them.
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_fsopen
#define SYS_fsopen 430
#define SYS_fsconfig 431
#define SYS_fsmount 432
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

int pidfd_open(pid_t pid, unsigned flags) {
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, flags));
}

int pidfd_send_signal(int pidfd, int signal) {
  return static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

int close_range(unsigned first, unsigned last, unsigned flags) {
  return static_cast<int>(::syscall(SYS_close_range, first, last, flags));
}

int setresuid(uid_t real, uid_t effective, uid_t saved) {
  return static_cast<int>(::syscall(SYS_setresuid, real, effective, saved));
}

int setresgid(gid_t real, gid_t effective, gid_t saved) {
  return static_cast<int>(::syscall(SYS_setresgid, real, effective, saved));
}

int setgroups(size_t size, const gid_t* list) {
  return static_cast<int>(::syscall(SYS_setgroups, size, list));
}

int capset_none() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  return static_cast<int>(::syscall(SYS_capset, &header, none));
}

bool has_capability(int capability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  return (data[capability / 32].effective & (1U << (capability % 32))) != 0;
}

int landlock_create_ruleset(const void* attr, size_t size, uint32_t flags) {
  return static_cast<int>(::syscall(SYS_landlock_create_ruleset, attr, size, flags));
}

int landlock_add_rule(int ruleset_fd, int rule_type, const void* attr, uint32_t flags) {
  return static_cast<int>(::syscall(SYS_landlock_add_rule, ruleset_fd, rule_type, attr, flags));
}

int landlock_restrict_self(int ruleset_fd, uint32_t flags) {
  return static_cast<int>(::syscall(SYS_landlock_restrict_self, ruleset_fd, flags));
}

int fsopen(const char* file_system, unsigned flags) {
  return static_cast<int>(::syscall(SYS_fsopen, file_system, flags));
}

int fsconfig(int fd, unsigned command, const char* key, const void* value, int aux) {
  return static_cast<int>(::syscall(SYS_fsconfig, fd, command, key, value, aux));
}

int fsmount(int fd, unsigned flags, unsigned attributes) {
  return static_cast<int>(::syscall(SYS_fsmount, fd, flags, attributes));
}

ssize_t getdents64(int fd, void* buffer, size_t size) {
  return ::syscall(SYS_getdents64, fd, buffer, size);
}

}  // namespace pyplaypen::sys::raw
