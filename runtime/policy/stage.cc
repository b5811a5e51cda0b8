#include "runtime/policy/stage.h"

#include <array>

namespace pyplaypen::policy {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(kLastStage) + 1> kNames = {
    "session", "stdio",    "directory",   "namespaces", "identity", "no_new_privs",
    "landlock", "descriptors", "signals", "warm_up",    "limits",   "exec"};

}  // namespace

std::string_view stage_name(Stage stage) { return kNames[static_cast<size_t>(stage)]; }

std::optional<Stage> stage_from_name(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Stage>(i);
  return std::nullopt;
}

}  // namespace pyplaypen::policy
