// A temporary directory, and short words for filling it with what a hostile call may leave.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "runtime/sys/error.h"
#include "runtime/sys/remove_tree.h"
#include "runtime/sys/unique_fd.h"

namespace pyplaypen::testing {

// For trees of many entries: some disks take 300 us to make one, memory takes 10.
inline std::string fast_directory() {
  return ::access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
}

class TempTree {
 public:
  explicit TempTree(const std::string& parent = "/tmp") {
    std::string name = parent + "/pyplaypen-test.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) sys::throw_errno("mkdtemp", name);
    path_ = name;
    fd_.reset(sys::check(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open", name));
  }
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;
  ~TempTree() { sys::remove_tree(AT_FDCWD, path_); }

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string at(std::string_view name) const {
    return path_ + "/" + std::string(name);
  }

  void file(std::string_view name, std::string_view content = "", mode_t mode = 0644) const {
    std::ofstream(at(name), std::ios::binary) << content;
    sys::check(::chmod(at(name).c_str(), mode), "chmod", at(name));
  }
  void sized_file(std::string_view name, uint64_t size) const {
    file(name);
    sys::check(::truncate(at(name).c_str(), static_cast<off_t>(size)), "truncate", at(name));
  }
  void directory(std::string_view name, mode_t mode = 0755) const {
    sys::check(::mkdir(at(name).c_str(), 0755), "mkdir", at(name));
    sys::check(::chmod(at(name).c_str(), mode), "chmod", at(name));
  }
  void link(const std::string& target, std::string_view name) const {
    sys::check(::symlink(target.c_str(), at(name).c_str()), "symlink", at(name));
  }
  void hard_link(const std::string& target, std::string_view name) const {
    sys::check(::link(target.c_str(), at(name).c_str()), "link", at(name));
  }
  void fifo(std::string_view name) const {
    sys::check(::mkfifo(at(name).c_str(), 0644), "mkfifo", at(name));
  }
  // `levels` directories called "d" inside each other; the lowest holds a file "f" where asked for.
  void deep(int levels, bool with_file) const {
    sys::UniqueFd here(
        sys::check(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open"));
    for (int i = 0; i < levels; ++i) {
      sys::check(::mkdirat(here.get(), "d", 0755), "mkdirat");
      here.reset(
          sys::check(::openat(here.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "openat"));
    }
    if (with_file)
      sys::UniqueFd(
          sys::check(::openat(here.get(), "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0644), "openat"));
  }
  void many_files(int count, std::string_view prefix) const {
    for (int i = 0; i < count; ++i)
      sys::UniqueFd(
          sys::check(::openat(fd_.get(), (std::string(prefix) + std::to_string(i)).c_str(),
                              O_CREAT | O_WRONLY | O_CLOEXEC, 0644),
                     "openat"));
  }

  [[nodiscard]] bool exists(std::string_view name) const {
    struct stat status;
    return ::lstat(at(name).c_str(), &status) == 0;
  }

 private:
  std::string path_;
  sys::UniqueFd fd_;
};

inline std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline struct stat status_of(const std::string& path) {
  struct stat status;
  sys::check(::lstat(path.c_str(), &status), "lstat", path);
  return status;
}

}  // namespace pyplaypen::testing
