// A Landlock ruleset as a value: configured here, in force nowhere until a child restricts itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pyplaypen {

// What a missing kernel feature means for a ruleset that asks for it.
enum class LandlockMissing { kRefuse, kLeaveOut };

// Each optional list: absent = that kind of access is not restricted; present = allowed beneath the
// listed paths (or for the listed ports) only, so an empty list denies it everywhere. Copied freely,
// stays usable after a build. man 7 landlock.
struct LandlockRuleset {
  std::optional<std::vector<std::string>> read_paths;
  std::optional<std::vector<std::string>> write_paths;   // create, change, remove, rename, truncate (ABI 3)
  std::optional<std::vector<std::string>> execute_paths;
  std::optional<std::vector<uint16_t>> bind_tcp_ports;     // ABI 4
  std::optional<std::vector<uint16_t>> connect_tcp_ports;  // ABI 4
  bool scope_signals = false;           // ABI 6: signal nothing outside the domain
  bool scope_abstract_sockets = false;  // ABI 6: connect to no abstract socket made outside of it
  LandlockMissing missing = LandlockMissing::kRefuse;

  bool operator==(const LandlockRuleset&) const = default;
};

// The kernel's Landlock ABI version, or 0 where it is absent or switched off.
int landlock_abi();

}  // namespace pyplaypen
