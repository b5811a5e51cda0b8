// System calls that glibc 2.36 has no wrapper for, or whose wrapper does more than the call. Named
// as the kernel names them; -1 and errno on failure; async-signal-safe.
#pragma once

#include <linux/landlock.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace pyplaypen::sys::raw {

int pidfd_open(pid_t pid, unsigned flags);
int pidfd_send_signal(int pidfd, int signal);
int close_range(unsigned first, unsigned last, unsigned flags);

// The credential calls of libc change every thread of the process by signalling them (man 7 nptl);
// these change the calling thread only, as a child between fork and exec needs.
int setresuid(uid_t real, uid_t effective, uid_t saved);
int setresgid(gid_t real, gid_t effective, gid_t saved);
int setgroups(size_t size, const gid_t* list);
// Drops every capability of the calling thread (permitted, effective, inheritable).
int capset_none();
// True when the calling thread has this capability in effect (man 7 capabilities).
bool has_capability(int capability);

int landlock_create_ruleset(const void* attr, size_t size, uint32_t flags);
int landlock_add_rule(int ruleset_fd, int rule_type, const void* attr, uint32_t flags);
int landlock_restrict_self(int ruleset_fd, uint32_t flags);

// man 2 fsopen (of util-linux's pages); Linux 5.2.
int fsopen(const char* file_system, unsigned flags);
int fsconfig(int fd, unsigned command, const char* key, const void* value, int aux);
int fsmount(int fd, unsigned flags, unsigned attributes);

// One read of a directory's entries (struct linux_dirent64, man 2 getdents).
ssize_t getdents64(int fd, void* buffer, size_t size);

}  // namespace pyplaypen::sys::raw
