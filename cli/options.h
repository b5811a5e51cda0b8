// What several commands take: limits, from flags and from the environment.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>

#include "pyplaypen/limits.h"

namespace pyplaypen::cli {

inline constexpr char kLimitsVariable[] = "PYPLAYPEN_LIMITS";

struct GivenLimits {
  Limits limits;
  std::set<std::string, std::less<>> given;  // the names that were set by anybody
};

// The defaults, then `environment` ("name=value,name=value"; null: none), then each of `flags`
// ("name=value"): the last one wins. Throws LimitError, naming the variable where it is at fault.
GivenLimits read_limits(const char* environment, std::span<const std::string> flags, LimitUse use);

// A variable that is set to anything but nothing or 0.
bool switched_on(const char* variable);

}  // namespace pyplaypen::cli
