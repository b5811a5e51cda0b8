// The directory that holds a supervisor's workspaces, and the ones that killed supervisors left.
//
// A base directory is `pyplaypen-<pid>-<random>`. Whoever may still use it (the supervisor, its
// zygote) holds a shared flock on it, through the descriptor that BaseDirectory opened and handed
// on; the kernel drops the lock with the last of them, however they end. So an exclusive lock that
// is granted proves that nobody is left. The pid is for people only: it may be reused.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "runtime/sys/unique_fd.h"

namespace pyplaypen::supervisor {

// Where base directories and kept artifacts go: the environment's TMPDIR when it names a directory,
// else /tmp. Absolute.
std::string temp_directory();

// Makes a base directory of mode 0711 and locks it; removes it on destruction, with all that is in
// it, unless that happens in a forked copy of the process. While it lives, the zygote must hold a
// copy of fd() too, if it is to outlive the host by a moment; calls must not.
class BaseDirectory {
 public:
  // Throws Refused where `temp_directory` is no good, sys::Error.
  explicit BaseDirectory(const std::string& temp_directory);
  BaseDirectory(const BaseDirectory&) = delete;
  BaseDirectory& operator=(const BaseDirectory&) = delete;
  ~BaseDirectory();

  // Nobody has removed it meanwhile.
  [[nodiscard]] bool is_there() const;
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  sys::UniqueFd fd_;
  pid_t maker_;
};

// Removes the base directories of our effective user under `temp_directory` that nobody holds any
// more. Never touches a link, another user's directory, or one that is in use. `pause` as in
// sys::remove_tree: a tree may hold a million files. Returns how many were removed; what cannot be
// listed, opened or removed is left for another time.
int sweep(const std::string& temp_directory, const std::function<bool()>& pause = {});

}  // namespace pyplaypen::supervisor
