// Which UIDs this process can give to its slots.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pyplaypen::supervisor {

// The first of a range of UIDs that slots can run as: `wanted`, if a range from there on is mapped in
// this user namespace (`uid_map` is the text of /proc/self/uid_map, man 7 user_namespaces); else, as
// in a rootless container, the end of the largest mapped range, below nobody's 65534. Nothing where
// too few are mapped.
std::optional<uint32_t> usable_uids(std::string_view uid_map, uint32_t wanted);

}  // namespace pyplaypen::supervisor
