// The control group of a slot: memory and processes of a call counted as a whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/sys/unique_fd.h"

namespace pyplaypen::jail {

// A group is one directory of cgroup v2, or one of each v1 hierarchy that is to limit something (v1 has one
// for each controller). Which of the two it is, and what it limits, shows by the files in it.
// Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/{memory,pids}.rst.
class Cgroup {
 public:
  // Makes a group `name` in each of `parents`, which this process may write; one that is there already is
  // taken over. Lets cgroup v2 count in it. Throws sys::Error.
  static Cgroup make(const std::vector<std::string>& parents, const std::string& name);
  // Of directories that exist. Throws sys::Error.
  explicit Cgroup(std::vector<std::string> directories);
  Cgroup(Cgroup&&) noexcept = default;
  Cgroup& operator=(Cgroup&&) = delete;
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
  // Ends all that is in it, and removes it.
  ~Cgroup();

  bool limits_memory() const { return static_cast<bool>(memory_limit_); }
  bool limits_processes() const { return static_cast<bool>(process_limit_); }

  // Borrowed descriptors: a process that does enter_cgroup() with each is in the group, and so is what it
  // forks from then on.
  std::vector<int> entrances() const;

  // Of all in it together, whoever is in it for itself included. Writes only what is not in force already.
  // Throws sys::Error.
  void limit(uint64_t memory_bytes, uint64_t processes);

  // How many processes the kernel has killed because memory_bytes was used up, since the group was made.
  uint64_t memory_kills() const;

  // Kills all that is in it, and waits for that, for some seconds at the most.
  void end_all() noexcept;

 private:
  bool has_members() const;
  void kill_members() const;

  std::vector<std::string> paths_;
  std::vector<sys::UniqueFd> directories_;
  std::vector<sys::UniqueFd> entrances_;
  sys::UniqueFd memory_limit_;
  sys::UniqueFd process_limit_;
  sys::UniqueFd memory_events_;
  uint64_t memory_bytes_ = 0;  // last written; 0: nothing yet
  uint64_t processes_ = 0;
};

// 0 or errno. Makes raw system calls only.
int enter_cgroup(int entrance) noexcept;

// Removes the groups beneath `parent` that are called pyplaypen-<pid>-..., where no process <pid> is left,
// and which are empty.
void remove_stale_cgroups(const std::string& parent);

}  // namespace pyplaypen::jail
