#include "runtime/sys/remove_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "runtime/sys/directory.h"
#include "runtime/sys/unique_fd.h"

namespace pyplaypen::sys {
namespace {

constexpr int kEntriesBetweenPauses = 256;
constexpr size_t kEntriesInOneLook = 4096;

struct Entry {
  std::string name;
  bool maybe_directory;
};

// Up to kEntriesInOneLook entries from the start of the directory.
std::vector<Entry> list(int dirfd) {
  std::vector<Entry> entries;
  DirectoryReader reader(dirfd);
  while (entries.size() < kEntriesInOneLook) {
    const auto entry = reader.next();
    if (!entry) break;
    entries.push_back(
        {std::string(entry->name), entry->type == DT_DIR || entry->type == DT_UNKNOWN});
  }
  return entries;
}

UniqueFd open_directory(int parent, const char* name) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd fd(::openat(parent, name, kFlags));
  if (!fd && errno == EACCES) {
    // Moving a directory, listing it and unlinking in it need all three of its owner's bits.
    (void)!::fchmodat(parent, name, 0700, 0);  // the open tells
    fd.reset(::openat(parent, name, kFlags));
  }
  return fd;
}

bool unlink_or_remove_empty(int dirfd, const Entry& entry) {
  if (!entry.maybe_directory && ::unlinkat(dirfd, entry.name.c_str(), 0) == 0) return true;
  return ::unlinkat(dirfd, entry.name.c_str(), AT_REMOVEDIR) == 0 ||
         ::unlinkat(dirfd, entry.name.c_str(), 0) == 0 || errno == ENOENT;
}

}  // namespace

bool empty_directory(int top, const std::function<bool()>& pause) {
  ::fchmod(top, 0700);
  int since_pause = 0;
  uint64_t moved = 0;
  for (bool progress = true; progress;) {
    progress = false;
    const std::vector<Entry> entries = list(top);
    if (entries.empty()) return true;
    for (const Entry& entry : entries) {
      if (++since_pause >= kEntriesBetweenPauses) {
        since_pause = 0;
        if (pause && pause()) return false;
      }
      if (unlink_or_remove_empty(top, entry)) {
        progress = true;
        continue;
      }
      const UniqueFd sub = open_directory(top, entry.name.c_str());
      if (!sub) continue;
      ::fchmod(sub.get(), 0700);
      for (const Entry& inner : list(sub.get())) {
        if (unlink_or_remove_empty(sub.get(), inner)) {
          progress = true;
          continue;
        }
        // A directory that is not empty: up it goes, to be emptied in a later round. The new name
        // must be free, and the moved directory writable (its ".." changes).
        (void)!::fchmodat(sub.get(), inner.name.c_str(), 0700, 0);  // the rename tells
        std::string name;
        struct stat taken;
        do {
          name = ".pyplaypen-" + std::to_string(moved++);
        } while (::fstatat(top, name.c_str(), &taken, AT_SYMLINK_NOFOLLOW) == 0);
        if (::renameat(sub.get(), inner.name.c_str(), top, name.c_str()) == 0) progress = true;
      }
      if (::unlinkat(top, entry.name.c_str(), AT_REMOVEDIR) == 0) progress = true;
    }
  }
  return list(top).empty();
}

bool is_empty_directory(int dirfd) {
  if (::lseek(dirfd, 0, SEEK_SET) < 0) return false;
  alignas(8) char buffer[1024];
  constexpr ssize_t kBothDots = 48;  // "." and "..", 24 bytes each
  const ssize_t first = raw::getdents64(dirfd, buffer, sizeof buffer);
  return first >= 0 && first <= kBothDots && raw::getdents64(dirfd, buffer, sizeof buffer) == 0;
}

bool remove_tree(int parent, const std::string& name, const std::function<bool()>& pause) {
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
  if (errno == ENOTDIR) return ::unlinkat(parent, name.c_str(), 0) == 0;
  {
    const UniqueFd dir = open_directory(parent, name.c_str());
    if (!dir || !empty_directory(dir.get(), pause)) return false;
  }
  return ::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0;
}

}  // namespace pyplaypen::sys
