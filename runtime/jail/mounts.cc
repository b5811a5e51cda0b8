#include "runtime/jail/mounts.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>

#include <cerrno>

#include "runtime/sys/raw.h"
#include "runtime/sys/unique_fd.h"

namespace pyplaypen::jail {

int detach_mounts() noexcept {
  return ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE | MS_SILENT, nullptr) == 0 ? 0 : errno;
}

int mount_own_proc() noexcept {
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_SILENT;
  return ::mount("proc", "/proc", "proc", kFlags, nullptr) == 0 ? 0 : errno;
}

int mount_own_shm() noexcept {
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_SILENT;
  return ::mount("tmpfs", "/dev/shm", "tmpfs", kFlags, "mode=1777") == 0 ? 0 : errno;
}

int open_message_queues() noexcept {
  const sys::UniqueFd context(sys::raw::fsopen("mqueue", FSOPEN_CLOEXEC));
  if (!context || sys::raw::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return -1;
  const sys::UniqueFd mount(sys::raw::fsmount(context.get(), FSMOUNT_CLOEXEC, 0));
  return mount ? ::openat(mount.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

}  // namespace pyplaypen::jail
