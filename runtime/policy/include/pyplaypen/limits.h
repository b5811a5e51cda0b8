// The limits of a call: numbers with units.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace pyplaypen {

// Defaults are those of the command, too. What each is applied to and what happens beyond it:
// docs/limits.md.
struct Limits {
  double wall_seconds = 30;                          // s, CLOCK_MONOTONIC, waiting for a slot included
  double cpu_seconds = 25;                           // s of CPU, each process
  uint64_t memory_bytes = uint64_t{1} << 30;         // B of address space, each process
  uint64_t process_count = 16;                       // tasks of the call
  uint64_t open_files = 256;                         // descriptors, each process
  uint64_t file_bytes = 50 * (uint64_t{1} << 20);    // B, each file
  uint64_t artifact_count = 16;                      // files that the call leaves
  uint64_t artifact_bytes = 50 * (uint64_t{1} << 20);  // B of them together
  uint64_t stdout_bytes = 64 * (uint64_t{1} << 10);  // B kept
  uint64_t stderr_bytes = 64 * (uint64_t{1} << 10);  // B kept
  uint64_t return_value_bytes = 1'000'000;           // B of JSON
  uint64_t result_frame_bytes = 2'000'000;           // B of the whole frame

  bool operator==(const Limits&) const = default;
};

// A limit that was named or given wrongly. what() is one sentence for the person who gave it.
class LimitError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// What the limits are for: cpu_seconds may be a fraction for code and must be whole for a command.
enum class LimitUse { kExecute, kCommand };

// Sets limits.*name from text: a decimal number, `_` between digits allowed. Throws LimitError for an
// unknown name (listing the valid ones), for a negative, infinite or NaN value, for a fraction where
// the limit is whole, and for what does not fit.
void set_limit(Limits& limits, std::string_view name, std::string_view text,
               LimitUse use = LimitUse::kExecute);

// "name=value". Throws LimitError.
void set_limit(Limits& limits, std::string_view assignment, LimitUse use = LimitUse::kExecute);

// Throws LimitError, naming limit, value and range, for values that no call could run under (a
// wall_seconds of NaN, an open_files of 2) or that are above a hard limit which this process
// inherited and may not raise.
void check_limits(const Limits& limits, LimitUse use = LimitUse::kExecute);

// The names in the order of the struct.
std::span<const std::string_view> limit_names();

// The value as its shortest text, for messages ("0.5", "1073741824"). Throws LimitError for an unknown name.
std::string limit_text(const Limits& limits, std::string_view name);

}  // namespace pyplaypen
