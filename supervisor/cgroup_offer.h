// What the control groups that were given can do, found by trying.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace pyplaypen::supervisor {

struct CgroupOffer {
  bool memory = false;
  bool processes = false;
  std::string missing;  // a sentence about what they cannot do, and why; empty: they can do both, or none was given
};

// Makes a group beneath `parents`, has a short-lived process enter it, sets limits, and removes it again.
CgroupOffer try_cgroups(const std::vector<std::filesystem::path>& parents);

// Absolute, as the zygote and messages need them.
std::vector<std::string> cgroup_paths(const std::vector<std::filesystem::path>& parents);

}  // namespace pyplaypen::supervisor
