#include "cli/options.h"

#include <cstdlib>
#include <string_view>

namespace pyplaypen::cli {
namespace {

void set(GivenLimits& into, std::string_view assignment, LimitUse use) {
  set_limit(into.limits, assignment, use);
  into.given.emplace(assignment.substr(0, assignment.find('=')));
}

void set_from_environment(GivenLimits& into, std::string_view text, LimitUse use) {
  while (!text.empty()) {
    const size_t comma = text.find(',');
    if (comma != 0) set(into, text.substr(0, comma), use);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
}

}  // namespace

GivenLimits read_limits(const char* environment, std::span<const std::string> flags, LimitUse use) {
  GivenLimits read;
  if (environment != nullptr) {
    try {
      set_from_environment(read, environment, use);
    } catch (const LimitError& error) {
      throw LimitError(std::string(kLimitsVariable) + ": " + error.what());
    }
  }
  for (const std::string& flag : flags) set(read, flag, use);
  return read;
}

bool switched_on(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

}  // namespace pyplaypen::cli
