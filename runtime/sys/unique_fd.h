// Owns one file descriptor.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace pyplaypen::sys {

// Closes its descriptor once, on destruction, and keeps errno across that. Never retries a close: on
// Linux the descriptor is gone even after EINTR (man 2 close).
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    const int old = std::exchange(fd_, fd);
    if (old < 0) return;
    const int saved = errno;
    ::close(old);
    errno = saved;
  }

 private:
  int fd_ = -1;
};

}  // namespace pyplaypen::sys
