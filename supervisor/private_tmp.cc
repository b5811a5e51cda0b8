#include "supervisor/private_tmp.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/sys/error.h"
#include "runtime/sys/remove_tree.h"

namespace pyplaypen::supervisor {

PrivateTmp::PrivateTmp(const std::string& parent, const std::optional<jail::Identity>& owner)
    : path_((parent.starts_with('/') ? parent : "/tmp") + "/pyplaypen-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) sys::throw_errno("mkdtemp", path_);
  if (!owner || ::chown(path_.c_str(), owner->uid, owner->gid) == 0) return;
  const int error = errno;
  ::rmdir(path_.c_str());
  throw sys::Error(error, "chown", path_);
}

PrivateTmp::~PrivateTmp() {
  // What cannot be removed (a mount point) stays: there is nothing left to try.
  (void)sys::remove_tree(AT_FDCWD, path_);
}

}  // namespace pyplaypen::supervisor
