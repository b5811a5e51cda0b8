#include "zygote/place.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/sys/error.h"
#include "runtime/sys/remove_tree.h"

namespace pyplaypen::zygote {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr std::array<std::string_view, 3> kNames = {"work", "home", "tmp"};
constexpr char kTrashPrefix[] = "trash-";

}  // namespace

Place::Place(const std::string& base_directory, const std::string& slot_name,
             std::optional<Owner> owner)
    : path_(base_directory + "/" + slot_name),
      work_(path_ + "/work"),
      home_(path_ + "/home"),
      tmp_(path_ + "/tmp"),
      owner_(owner),
      name_(slot_name) {
  parent_.reset(sys::check(::open(base_directory.c_str(), kDirectoryFlags), "open", base_directory));
  if (::mkdirat(parent_.get(), name_.c_str(), 0711) != 0 && errno != EEXIST)
    sys::throw_errno("mkdir", path_);
  slot_.reset(sys::check(::openat(parent_.get(), name_.c_str(), kDirectoryFlags), "open", path_));
  sys::check(::fchmod(slot_.get(), 0711), "fchmod", path_);  // whatever the umask was
  prepare();
}

void Place::prepare() {
  if (prepare_one("work", work_fd_)) ++work_number_;
  prepare_one("home", home_fd_);
  prepare_one("tmp", tmp_fd_);
  if (owner_) return;  // the calls' user cannot make anything else here
  // Calls of our own user can.
  ::fchmod(slot_.get(), 0711);
  const int copy = ::openat(slot_.get(), ".", kDirectoryFlags);
  if (copy < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(copy), ::closedir);
  std::vector<std::string> strange;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || name.starts_with(kTrashPrefix)) continue;
    if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) strange.emplace_back(name);
  }
  for (const std::string& name : strange) move_aside(name);
}

// True when it is another one than before.
bool Place::prepare_one(const char* name, sys::UniqueFd& fd) {
  if (fd && untouched(name, fd.get())) return false;
  move_aside(name);
  sys::check(::mkdirat(slot_.get(), name, 0700), "mkdir", path_ + "/" + name);
  if (owner_)
    sys::check(::fchownat(slot_.get(), name, owner_->uid, owner_->gid, AT_SYMLINK_NOFOLLOW), "chown",
               path_ + "/" + name);
  fd.reset(sys::check(::openat(slot_.get(), name, kDirectoryFlags), "open", path_ + "/" + name));
  return true;
}

void Place::hand_over(Owner user) {
  for (const int fd : {work_fd_.get(), home_fd_.get(), tmp_fd_.get()})
    sys::check(::fchown(fd, user.uid, user.gid), "fchown", path_);
}

bool Place::untouched(const char* name, int fd) const {
  struct stat held{};
  struct stat named{};
  if (::fstat(fd, &held) != 0 || ::fstatat(slot_.get(), name, &named, AT_SYMLINK_NOFOLLOW) != 0)
    return false;
  const uid_t uid = owner_ ? owner_->uid : ::geteuid();
  // Extended attributes (ACLs among them) would outlive the call unseen.
  return held.st_dev == named.st_dev && held.st_ino == named.st_ino &&
         (held.st_mode & 07777) == 0700 && held.st_uid == uid && sys::is_empty_directory(fd) &&
         ::flistxattr(fd, nullptr, 0) <= 0;
}

void Place::move_aside(const std::string& name) {
  for (;;) {
    const std::string trash = kTrashPrefix + std::to_string(moved_++);
    if (::renameat2(slot_.get(), name.c_str(), slot_.get(), trash.c_str(), RENAME_NOREPLACE) == 0) {
      has_trash_ = true;
      return;
    }
    if (errno == ENOENT) return;
    if (errno != EEXIST) sys::throw_errno("rename", path_ + "/" + name);
  }
}

void Place::empty_trash(const std::function<bool()>& pause) {
  for (unsigned long i = 0; i < moved_; ++i)
    if (!sys::remove_tree(slot_.get(), kTrashPrefix + std::to_string(i), pause) && pause && pause())
      return;
  has_trash_ = false;
  moved_ = 0;
}

void Place::remove() {
  work_fd_.reset();
  home_fd_.reset();
  tmp_fd_.reset();
  slot_.reset();
  sys::remove_tree(parent_.get(), name_);
}

sys::UniqueFd Place::open_work() const {
  return sys::UniqueFd(sys::check(::openat(work_fd_.get(), ".", kDirectoryFlags), "open", work()));
}

}  // namespace pyplaypen::zygote
