#include "supervisor/uid_range.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace pyplaypen::supervisor {
namespace {

constexpr uint64_t kNobody = 65534;
constexpr uint64_t kSlots = 1024;  // as many as a Sandbox may have

struct Range {
  uint64_t first;
  uint64_t count;
};

std::vector<Range> parse(std::string_view uid_map) {
  std::vector<Range> ranges;
  std::istringstream lines{std::string(uid_map)};
  for (uint64_t inside = 0, outside = 0, count = 0; lines >> inside >> outside >> count;)
    ranges.push_back({inside, count});
  return ranges;
}

}  // namespace

std::optional<uint32_t> usable_uids(std::string_view uid_map, uint32_t wanted) {
  const std::vector<Range> ranges = parse(uid_map);
  for (const Range& range : ranges)
    if (range.first <= wanted && wanted + kSlots <= range.first + range.count) return wanted;
  std::optional<uint32_t> best;
  uint64_t largest = 0;
  for (const Range& range : ranges) {
    const uint64_t end = std::min(range.first + range.count, range.first < kNobody ? kNobody : UINT64_MAX);
    // The lower half is where a container's own users are.
    if (end - range.first < 2 * kSlots || end - range.first <= largest) continue;
    largest = end - range.first;
    best = static_cast<uint32_t>(end - kSlots);
  }
  return best;
}

}  // namespace pyplaypen::supervisor
