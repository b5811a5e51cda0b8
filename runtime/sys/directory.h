// Reads a directory, entry by entry.
#pragma once

#include <dirent.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "runtime/sys/raw.h"

namespace pyplaypen::sys {

// Borrows a descriptor that can be read and moves its offset: from the directory's start, on.
// Unlike readdir it needs no descriptor of its own and no heap.
class DirectoryReader {
 public:
  struct Entry {
    std::string_view name;  // NUL-terminated; until the next next()
    unsigned char type;     // DT_DIR and so on; DT_UNKNOWN where the file system does not say
  };

  explicit DirectoryReader(int dirfd) : dirfd_(dirfd) {
    if (::lseek(dirfd, 0, SEEK_SET) < 0) error_ = errno;
  }

  // Without "." and "..". Nothing at the end and after a failure: see error().
  std::optional<Entry> next() {
    for (;;) {
      if (at_ == size_ && !fill()) return std::nullopt;
      const char* const record = buffer_ + at_;
      unsigned short length = 0;
      std::memcpy(&length, record + kLengthAt, sizeof length);
      at_ += length;
      const std::string_view name(record + kNameAt);
      if (name != "." && name != "..")
        return Entry{name, static_cast<unsigned char>(record[kTypeAt])};
    }
  }

  // The errno that ended the reading, or 0. ENOENT: the directory has been removed meanwhile.
  [[nodiscard]] int error() const { return error_; }

 private:
  // struct linux_dirent64 of man 2 getdents: ino 8, off 8, reclen 2, type 1, name.
  static constexpr size_t kLengthAt = 16;
  static constexpr size_t kTypeAt = 18;
  static constexpr size_t kNameAt = 19;

  bool fill() {
    if (error_ != 0) return false;
    const ssize_t got = raw::getdents64(dirfd_, buffer_, sizeof buffer_);
    if (got < 0) error_ = errno;
    at_ = 0;
    size_ = got > 0 ? static_cast<size_t>(got) : 0;
    return got > 0;
  }

  int dirfd_;
  int error_ = 0;
  size_t at_ = 0;
  size_t size_ = 0;
  alignas(8) char buffer_[16384];
};

}  // namespace pyplaypen::sys
