// The cgroup hierarchies of this machine that a test may make groups in.
#pragma once

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace pyplaypen::testing {

// Where the first file system of `type` with `option` is mounted and may be written; empty: nowhere.
inline std::string writable_mount(std::string_view type, std::string_view option) {
  std::ifstream mounts("/proc/self/mounts");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device, point, found_type, options;
    words >> device >> point >> found_type >> options;
    const bool has_option = option.empty() || ("," + options + ",").find("," + std::string(option) + ",") != std::string::npos;
    if (found_type == type && has_option && ::access(point.c_str(), W_OK) == 0) return point;
  }
  return {};
}

inline std::vector<std::string> cgroups_of_version_one() {
  const std::string memory = writable_mount("cgroup", "memory");
  const std::string pids = writable_mount("cgroup", "pids");
  if (memory.empty() || pids.empty()) return {};
  return {memory, pids};
}

inline std::string cgroup_of_version_two() { return writable_mount("cgroup2", ""); }

// What counts memory and processes here: of version two, else of version one; empty: nothing that may be written.
inline std::vector<std::string> counting_cgroups() {
  const std::string two = cgroup_of_version_two();
  std::ostringstream controllers;
  if (!two.empty()) controllers << std::ifstream(two + "/cgroup.controllers").rdbuf();
  const std::string text = controllers.str();
  if (text.find("memory") != std::string::npos && text.find("pids") != std::string::npos) return {two};
  return cgroups_of_version_one();
}

}  // namespace pyplaypen::testing
