// The directories of a slot: where its calls run and what they may leave.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "runtime/sys/unique_fd.h"

namespace pyplaypen::zygote {

struct Owner {
  uid_t uid;
  gid_t gid;
};

// <base>/<slot>/{work,home,tmp}: the current directory, HOME with the caches, TMPDIR. Each call finds
// them empty, ours and 0700. What a call left is moved aside at once and deleted later, so that a
// million files delay nobody.
class Place {
 public:
  // Creates them; `owner` absent: this process's own user. Throws sys::Error.
  Place(const std::string& base_directory, const std::string& slot_name, std::optional<Owner> owner);

  // Makes all three fresh for the next call. A directory that the last call left as it found it is
  // used again (mkdir + rmdir cost 220 us on ext4). Nothing of the last call may be alive.
  void prepare();

  // Gives the three directories to another user until the next prepare(). Throws sys::Error.
  void hand_over(Owner user);

  // Deletes what prepare() moved aside, until nothing is left or `pause` returns true.
  void empty_trash(const std::function<bool()>& pause);
  bool has_trash() const { return has_trash_; }

  // Deletes all of it, this slot's own directory included.
  void remove();

  const std::string& path() const { return path_; }
  const std::string& work() const { return work_; }
  const std::string& home() const { return home_; }
  const std::string& tmp() const { return tmp_; }
  int work_fd() const { return work_fd_.get(); }
  // Counts the directories that work() has named.
  unsigned long work_number() const { return work_number_; }
  // A description of its own, with its own offset, for the supervisor. Throws sys::Error.
  sys::UniqueFd open_work() const;

 private:
  bool prepare_one(const char* name, sys::UniqueFd& fd);
  bool untouched(const char* name, int fd) const;
  void move_aside(const std::string& name);

  std::string path_;
  std::string work_;
  std::string home_;
  std::string tmp_;
  std::optional<Owner> owner_;
  sys::UniqueFd parent_;
  std::string name_;
  sys::UniqueFd slot_;
  sys::UniqueFd work_fd_;
  sys::UniqueFd home_fd_;
  sys::UniqueFd tmp_fd_;
  unsigned long moved_ = 0;
  unsigned long work_number_ = 0;
  bool has_trash_ = false;
};

}  // namespace pyplaypen::zygote
