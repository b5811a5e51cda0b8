// One step through bytes that may be UTF-8.
#pragma once

#include <string_view>

namespace pyplaypen::wire {

struct Utf8Step {
  unsigned length;  // bytes of the character; where it is not valid, of its longest valid
                    // beginning, at least 1
  bool valid;
};

// The character that starts at `at` (at < end). Valid as the Unicode Standard, table 3-7, has it:
// no overlong form, no surrogate, nothing beyond U+10FFFF. One U+FFFD per invalid step is what
// Python's errors="replace" gives.
inline Utf8Step utf8_step(const char* at, const char* end) {
  const auto byte = [&](unsigned i) { return static_cast<unsigned char>(at[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, true};
  if (first < 0xc2 || first > 0xf4) return {1, false};
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (first == 0xe0) low = 0xa0;
  if (first == 0xed) high = 0x9f;
  if (first == 0xf0) low = 0x90;
  if (first == 0xf4) high = 0x8f;
  const unsigned length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  for (unsigned i = 1; i < length; ++i) {
    if (at + i == end || byte(i) < low || byte(i) > high) return {i, false};
    low = 0x80;
    high = 0xbf;
  }
  return {length, true};
}

inline bool is_utf8(std::string_view bytes) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  while (at < end) {
    const Utf8Step step = utf8_step(at, end);
    if (!step.valid) return false;
    at += step.length;
  }
  return true;
}

}  // namespace pyplaypen::wire
