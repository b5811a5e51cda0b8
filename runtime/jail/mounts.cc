#include "runtime/jail/mounts.h"

#include <sys/mount.h>

#include <cerrno>

namespace pyplaypen::jail {

int detach_mounts() noexcept {
  return ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE | MS_SILENT, nullptr) == 0 ? 0 : errno;
}

int mount_own_proc() noexcept {
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_SILENT;
  return ::mount("proc", "/proc", "proc", kFlags, nullptr) == 0 ? 0 : errno;
}

}  // namespace pyplaypen::jail
