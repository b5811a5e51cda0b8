// Bounded capture of a stream: keeps a beginning, counts and hashes all of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pyplaypen/result.h"
#include "runtime/sys/hash.h"

namespace pyplaypen::supervisor {

// Put where a stream was cut.
inline constexpr std::string_view kTruncationMark = "\n[truncated]\n";

// Memory: the limit, whatever is written.
class Capture {
 public:
  explicit Capture(uint64_t limit) : limit_(limit) {}

  void add(std::string_view bytes);
  // What was seen so far; the capture is empty afterwards.
  Output take();

 private:
  uint64_t limit_;
  uint64_t total_ = 0;
  std::string kept_;
  sys::Sha256 hash_;
};

}  // namespace pyplaypen::supervisor
