#include "supervisor/output.h"

#include <algorithm>

namespace pyplaypen::supervisor {

void Capture::add(std::string_view bytes) {
  hash_.update(bytes);
  if (total_ < limit_)
    kept_.append(bytes.substr(0, static_cast<size_t>(std::min<uint64_t>(bytes.size(), limit_ - total_))));
  total_ += bytes.size();
}

Output Capture::take() {
  Output output;
  output.total_bytes = total_;
  output.sha256 = hash_.hex();
  output.truncated = total_ > limit_;
  output.bytes = std::move(kept_);
  if (output.truncated) output.bytes += kTruncationMark;
  return output;
}

}  // namespace pyplaypen::supervisor
