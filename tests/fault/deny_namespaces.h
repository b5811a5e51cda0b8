// A kernel, or a container, that refuses some namespaces.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

namespace pyplaypen::testing {

// From here on this process and its children get EPERM from clone and unshare with any of `flags`
// (CLONE_NEW*); clone3, whose flags a filter cannot see, does not exist. False where seccomp is missing.
inline bool deny_namespaces(unsigned flags) {
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
  constexpr auto kNumber = static_cast<unsigned>(offsetof(seccomp_data, nr));
  constexpr auto kFlags = static_cast<unsigned>(offsetof(seccomp_data, args[0]));  // its lower half
  const std::array filter = {
      sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, kNumber},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 3, 0, SYS_clone3},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 3, 0, SYS_clone},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 2, 0, SYS_unshare},
      sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
      sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
      sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, kFlags},
      sock_filter{BPF_JMP | BPF_JSET | BPF_K, 1, 0, flags},
      sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
      sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
  };
  const sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
  if (::geteuid() != 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

}  // namespace pyplaypen::testing
