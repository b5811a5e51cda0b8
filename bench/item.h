// One thing that is measured, and where its samples go.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace pyplaypen::bench {

using Clock = std::chrono::steady_clock;

inline double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

enum class Unit { kMicroseconds, kPerSecond, kMegabytesPerSecond, kKilobytes };

inline const char* unit_name(Unit unit) {
  switch (unit) {
    case Unit::kMicroseconds: return "us";
    case Unit::kPerSecond: return "1/s";
    case Unit::kMegabytesPerSecond: return "MB/s";
    case Unit::kKilobytes: return "kB";
  }
  return "";
}

struct Item {
  std::string name;  // "floor/...", "call/...", "run/...", "sweep/...": the report goes by these
  Unit unit = Unit::kMicroseconds;
  int per_round = 1;
  // One sample. Throws std::runtime_error: the item then ends with that sentence as its note.
  std::function<double()> measure;
};

// What is to be measured, in the order in which a round goes through it, and what cannot be.
struct Plan {
  std::vector<Item> items;
  std::map<std::string, std::string> skipped;  // name -> why
};

// How long and how often.
struct Mode {
  bool quick = false;
  int rounds = 20;
  int scaled(int full, int in_quick) const { return quick ? in_quick : full; }
};

}  // namespace pyplaypen::bench
