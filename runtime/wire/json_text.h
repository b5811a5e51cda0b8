// JSON that stays text: checking it and quoting into it.
//
// Values of calls travel and are kept as text. A parser into a document model is no way to check
// them: nlohmann_json refuses numbers beyond a double (an int of 5 000 digits must arrive), and
// building a document only to throw it away costs some ten times as much.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pyplaypen::wire {

// Nothing when `text` is exactly one JSON value as RFC 8259 has it, with white space around it
// allowed; else one sentence with the byte at which it stops being one. Stricter than the RFC where
// it leaves a choice: valid UTF-8 in strings, no unpaired surrogate in \u escapes, no byte order
// mark, at most `max_depth` arrays and objects inside each other. Numbers may have any length;
// equal keys in one object are allowed. Time linear in the text, memory one byte a level.
std::optional<std::string> json_error(std::string_view text, int max_depth);

// `bytes` as a JSON string with its quotes. What is not UTF-8 becomes U+FFFD, one for each longest
// valid beginning of a character (as Python's errors="replace" does).
std::string json_quote(std::string_view bytes);

// The same, appended to `into`.
void json_quote_to(std::string& into, std::string_view bytes);

}  // namespace pyplaypen::wire
