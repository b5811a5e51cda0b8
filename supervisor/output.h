// Bounded capture of a stream: keeps a beginning, counts and hashes all of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pyplaypen/result.h"
#include "runtime/sys/hash.h"

namespace pyplaypen::supervisor {

// Put where a stream was cut.
inline constexpr std::string_view kTruncationMark = "\n[truncated]\n";

enum class Hashing { kNone, kSha256 };

// Memory: the limit, whatever is written. Never fails, so that a stream beyond it kills nobody.
class Capture {
 public:
  explicit Capture(uint64_t limit, Hashing hashing = Hashing::kSha256);

  // Counts and hashes `bytes` and gives back those within the limit, for a caller that passes them on;
  // at the first byte beyond it, the mark follows. Valid until the next call and while `bytes` is.
  std::string_view pass(std::string_view bytes);
  // The same, kept.
  void add(std::string_view bytes) { kept_.append(pass(bytes)); }

  [[nodiscard]] uint64_t total() const { return total_; }
  [[nodiscard]] bool truncated() const { return total_ > limit_; }
  // What was seen so far, without a hash where there was no hashing; the capture is empty afterwards.
  Output take();

 private:
  uint64_t limit_;
  uint64_t total_ = 0;
  std::string kept_;
  std::string cut_;  // the last bytes within the limit, and the mark
  std::optional<sys::Sha256> hash_;
};

}  // namespace pyplaypen::supervisor
