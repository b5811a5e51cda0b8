// The zygote as seen from the supervisor: start it, have it start CPython and open keepers, notice
// its end.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/sys/unique_fd.h"
#include "runtime/wire/codec.h"

namespace pyplaypen::supervisor {

// The pyplaypen-zygote executable that belongs to this library. Throws Refused naming where it looked.
std::filesystem::path find_zygote(const std::filesystem::path& wanted);

// Used under its owner's lock. Destroying it ends the zygote, its keepers and all their calls: it
// sees the end of its channel.
class ZygoteProcess {
 public:
  // Starts `executable` with an empty environment, no descriptor but the channel, and signals as new
  // processes have them. It is no child of this process (it would raise SIGCHLD here). It keeps a
  // copy of `base_directory`, whose lock says that the workspaces are in use. Throws.
  ZygoteProcess(const std::filesystem::path& executable, const wire::Setup& setup, int base_directory);
  // Waits for the end of all of it.
  ~ZygoteProcess();

  // For the keepers that it opens from now on. Throws Refused when it is gone.
  void set_up(const wire::Setup& setup, int base_directory);

  // Has it start CPython; waits, an hour of imports is not too long. Throws ExtensionError, Refused.
  wire::Ready start_python(const wire::StartPython& as);

  // Has it open a keeper; the returned channel is the supervisor's end, KeeperReady comes first.
  // Throws sys::Error when the zygote is gone.
  // The keeper holds `claim` while it lives, and enters the cgroup whose `entrances` these are.
  sys::UniqueFd open_keeper(const wire::OpenKeeper& slot, sys::UniqueFd claim, const std::vector<int>& entrances);

  // False once the zygote has ended. Does not wait.
  bool alive();

  // Has it end a slot's keeper, dead or alive, and all that it had; waits for that. False when the zygote
  // is gone itself.
  bool close_keeper(uint32_t slot);

 private:
  template <typename Message>
  std::optional<Message> receive();

  pid_t host_pid_ = 0;
  sys::UniqueFd channel_;
  wire::FrameReader reader_;
};

}  // namespace pyplaypen::supervisor
