// The cap on processes that a container puts on everything in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pyplaypen::policy {

// The lowest pids.max of this process's cgroup and of those above it that are mounted here; cgroup v1
// and v2. Empty where there is none, or none can be seen. `root` stands before every path (tests).
std::optional<uint64_t> pids_cap(const std::string& root = {});

}  // namespace pyplaypen::policy
