#include "supervisor/output.h"

namespace pyplaypen::supervisor {

Capture::Capture(uint64_t limit, Hashing hashing) : limit_(limit) {
  if (hashing == Hashing::kSha256) hash_.emplace();
}

std::string_view Capture::pass(std::string_view bytes) {
  if (hash_) hash_->update(bytes);
  const uint64_t before = total_;
  total_ += bytes.size();
  if (total_ <= limit_) return bytes;
  if (before > limit_) return {};
  cut_.assign(bytes.substr(0, limit_ - before)).append(kTruncationMark);
  return cut_;
}

Output Capture::take() {
  Output output;
  output.total_bytes = total_;
  if (hash_) output.sha256 = hash_->hex();
  output.truncated = truncated();
  output.bytes = std::move(kept_);
  return output;
}

}  // namespace pyplaypen::supervisor
