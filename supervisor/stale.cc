#include "supervisor/stale.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string_view>
#include <vector>

#include "pyplaypen/error.h"
#include "runtime/sys/directory.h"
#include "runtime/sys/error.h"
#include "runtime/sys/remove_tree.h"
#include "supervisor/way_out.h"

namespace pyplaypen::supervisor {
namespace {

using sys::UniqueFd;

constexpr std::string_view kPrefix = "pyplaypen-";
constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr size_t kRandomDigits = 16;
constexpr int kNamesToTry = 100;

std::string random_digits() {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::random_device random;
  std::string text(kRandomDigits, '0');
  for (char& c : text) c = kDigits[random() % kDigits.size()];
  return text;
}

// pyplaypen-<digits>-<letters and digits>, and no other name that begins so.
bool is_base_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  const size_t dash = name.find('-');
  if (dash == 0 || dash == std::string_view::npos) return false;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::string_view tail = name.substr(dash + 1);
  return std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(dash), digit) &&
         tail.size() == kRandomDigits && std::all_of(tail.begin(), tail.end(), [&](char c) {
           return digit(c) || (c >= 'a' && c <= 'z');
         });
}

// True when `name` in `parent` still is the directory that `fd` is open on.
bool is_same(int parent, const std::string& name, int fd) {
  struct stat named;
  struct stat opened;
  return ::fstatat(parent, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstat(fd, &opened) == 0 && named.st_ino == opened.st_ino &&
         named.st_dev == opened.st_dev;
}

std::vector<std::string> base_names(int directory) {
  std::vector<std::string> names;
  sys::DirectoryReader reader(directory);
  while (const auto entry = reader.next())
    if (is_base_name(entry->name)) names.emplace_back(entry->name);
  return names;
}

// The descriptor holds the lock; empty when the directory is not ours to remove.
UniqueFd lock_stale(int parent, const std::string& name) {
  UniqueFd fd(::openat(parent, name.c_str(), kFlags));
  struct stat status;
  if (!fd || ::fstat(fd.get(), &status) != 0 || status.st_uid != ::geteuid() ||
      ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || !is_same(parent, name, fd.get()))
    fd.reset();
  return fd;
}

[[noreturn]] void refuse(int error, std::string_view call, const std::string& path) {
  throw Refused(with_way_out_of_tmpdir(sys::Error(error, call, path).what(), error));
}

}  // namespace

std::string temp_directory() {
  const char* const named = std::getenv("TMPDIR");
  std::error_code error;
  if (named != nullptr && *named != '\0' && std::filesystem::is_directory(named, error))
    return std::filesystem::absolute(named).string();
  return "/tmp";
}

BaseDirectory::BaseDirectory(const std::string& temp_directory) : maker_(::getpid()) {
  const UniqueFd parent(::open(temp_directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent) refuse(errno, "open", temp_directory);
  for (int i = 0; i < kNamesToTry; ++i) {
    const std::string name = std::string(kPrefix) + std::to_string(maker_) + "-" + random_digits();
    if (::mkdirat(parent.get(), name.c_str(), 0711) != 0) {
      if (errno == EEXIST) continue;
      refuse(errno, "mkdir", temp_directory + "/" + name);
    }
    UniqueFd fd(::openat(parent.get(), name.c_str(), kFlags));
    // Between mkdir and flock a sweep may have found it unlocked: it is then gone, and the next
    // name gets its turn.
    if (!fd && errno == ENOENT) continue;
    sys::check(fd.get(), "openat", name);
    sys::check(sys::retry_eintr([&] { return ::flock(fd.get(), LOCK_SH); }), "flock", name);
    if (!is_same(parent.get(), name, fd.get())) continue;
    sys::check(::fchmod(fd.get(), 0711), "fchmod", name);  // whatever the umask
    fd_ = std::move(fd);
    path_ = (std::filesystem::absolute(temp_directory) / name).string();
    return;
  }
  throw sys::Error(EEXIST, "mkdirat", temp_directory);
}

bool BaseDirectory::is_there() const {
  struct stat status;
  return ::fstat(fd_.get(), &status) == 0 && status.st_nlink > 0;
}

BaseDirectory::~BaseDirectory() {
  if (::getpid() != maker_) return;
  if (!sys::empty_directory(fd_.get())) return;  // a later sweep has another try
  ::rmdir(path_.c_str());
}

int sweep(const std::string& temp_directory, const std::function<bool()>& pause) {
  const UniqueFd parent(::open(temp_directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent) return 0;
  int removed = 0;
  for (const std::string& name : base_names(parent.get())) {
    const UniqueFd lock = lock_stale(parent.get(), name);
    if (!lock) continue;
    if (sys::remove_tree(parent.get(), name, pause)) ++removed;
    if (pause && pause()) break;
  }
  return removed;
}

}  // namespace pyplaypen::supervisor
