#include "bench/memory.h"

#include <fstream>
#include <string>

namespace pyplaypen::bench {
namespace {

// "Name:   123 kB"; 0: no such line.
double field(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line))
    if (line.starts_with(name + ":")) return std::stod(line.substr(name.size() + 1));
  return 0;
}

std::string of(pid_t pid, const char* file) { return "/proc/" + std::to_string(pid) + "/" + file; }

}  // namespace

double own_memory_kb() { return field("/proc/self/status", "VmRSS"); }
void reset_own_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }  // man 5 proc
double own_peak_kb() { return field("/proc/self/status", "VmHWM"); }

double resident_kb(pid_t pid) { return field(of(pid, "status"), "VmRSS"); }
double proportional_kb(pid_t pid) { return field(of(pid, "smaps_rollup"), "Pss"); }
double private_kb(pid_t pid) {
  return field(of(pid, "smaps_rollup"), "Private_Dirty") + field(of(pid, "smaps_rollup"), "Private_Clean");
}

}  // namespace pyplaypen::bench
