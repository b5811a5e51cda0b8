// The calls of a soak: what each does, and which answers are right.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "pyplaypen/sandbox.h"

namespace pyplaypen::soak {

struct Kind {
  std::string_view name;
  int weight;             // how often, relative to the others
  std::string_view code;  // '@' becomes the call's number
  // Its only right answers, with spaces between: names of error types, or "ok".
  std::string_view answers;
  std::string_view value = "null";  // for "ok"; '@' as above
  std::string_view output = {};     // that its standard output begins with; '@' as above
  void (*adjust)(Limits&) = nullptr;
  size_t artifacts = 0;
};

std::span<const Kind> kinds();

// `text` with each '@' replaced by `number`.
std::string fill_in(std::string_view text, uint64_t number);

// Empty, or what is wrong with the answer to call `number`.
std::string wrong_with(const Kind& kind, const Result& result, uint64_t number);

// The error type's name, or "ok".
std::string answer_of(const Result& result);

}  // namespace pyplaypen::soak
