// The named stages of a child's set-up, from fork to the first line of the call.
#pragma once

#include <optional>
#include <string_view>

namespace pyplaypen::policy {

// In the order in which a child goes through them; docs/design.md says what each does.
enum class Stage {
  kSession,     // a session of its own
  kStdio,       // 0, 1, 2 are the call's pipes
  kDirectory,   // the workspace is the current directory
  kNamespaces,  // unshare, maps, hostname, /proc
  kIdentity,    // groups, GID, UID, capabilities
  kNoNewPrivs,  // PR_SET_NO_NEW_PRIVS
  kLandlock,    // write set, scopes
  kDescriptors, // nothing else is open
  kSignals,     // dispositions and mask
  kWarmUp,      // forks of the interpreter only
  kLimits,      // rlimits of the request
  kExec,        // argv targets only
};

inline constexpr Stage kLastStage = Stage::kExec;

std::string_view stage_name(Stage stage);
std::optional<Stage> stage_from_name(std::string_view name);

}  // namespace pyplaypen::policy
