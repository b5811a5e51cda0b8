#include "bench/growth.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/item.h"
#include "bench/memory.h"
#include "runtime/sys/proc.h"

namespace pyplaypen::bench {
namespace {

namespace fs = std::filesystem;

// The processes and directories behind a Sandbox, as a call sees them.
struct Behind {
  pid_t zygote = 0;
  fs::path base;
};

pid_t parent_of(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string line;
  while (std::getline(status, line))
    if (line.starts_with("PPid:")) return std::stoi(line.substr(5));
  return 0;
}

Behind look_behind(Sandbox& sandbox) {
  const Result result = sandbox.execute("import os\n[os.getppid(), os.getcwd()]");
  const nlohmann::json value = nlohmann::json::parse(value_of(result));
  Behind behind;
  behind.zygote = parent_of(value[0].get<pid_t>());  // the call's parent is its slot's keeper
  behind.base = fs::path(value[1].get<std::string>()).parent_path().parent_path();
  return behind;
}

int entries_in(const fs::path& directory) {
  int count = 0;
  std::error_code gone;
  for (fs::recursive_directory_iterator at(directory, gone), end; at != end; at.increment(gone)) ++count;
  return count;
}

int open_files_of(pid_t pid) {
  std::error_code barred;
  int count = 0;
  for (fs::directory_iterator at("/proc/" + std::to_string(pid) + "/fd", barred), end; at != end;
       at.increment(barred))
    ++count;
  return count;
}

}  // namespace

nlohmann::json measure_growth(int calls) {
  constexpr int kWindows = 50;
  const int window = std::max(1, calls / kWindows);
  Sandbox sandbox;
  const Behind behind = look_behind(sandbox);
  nlohmann::json rows = nlohmann::json::array();
  std::vector<double> times(static_cast<size_t>(window));
  for (int done = 0; done < calls; done += window) {
    for (double& time : times) {
      const auto begin = Clock::now();
      value_of(sandbox.execute("1+1"));
      time = microseconds_since(begin);
    }
    std::ranges::sort(times);
    // Where the last call is ended and its successor prepared, the tree is at rest.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    double keepers_kb = 0;
    int keepers_fds = 0;
    const std::vector<pid_t> keepers = sys::children_of(behind.zygote);
    for (const pid_t keeper : keepers) {
      keepers_kb += resident_kb(keeper);
      keepers_fds += open_files_of(keeper);
    }
    rows.push_back({{"calls", done + window},
                    {"p50_us", times[times.size() / 2]},
                    {"p99_us", times[times.size() * 99 / 100]},
                    {"host_kb", own_memory_kb()},
                    {"zygote_kb", resident_kb(behind.zygote)},
                    {"keepers", keepers.size()},
                    {"keepers_kb", keepers_kb},
                    {"host_fds", sys::open_fds().size()},
                    {"zygote_fds", open_files_of(behind.zygote)},
                    {"keepers_fds", keepers_fds},
                    {"temp_entries", entries_in(behind.base)}});
  }
  return rows;
}

nlohmann::json measure_memory(Sandbox& sandbox) {
  const Behind behind = look_behind(sandbox);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto describe = [](const std::vector<pid_t>& pids) {
    double resident = 0;
    double proportional = 0;
    double own = 0;
    for (const pid_t pid : pids) {
      resident += resident_kb(pid);
      proportional += proportional_kb(pid);
      own += private_kb(pid);
    }
    const auto count = static_cast<double>(std::max<size_t>(1, pids.size()));
    return nlohmann::json{{"processes", pids.size()},
                          {"rss_kb", resident / count},
                          {"pss_kb", proportional / count},
                          {"private_kb", own / count}};
  };
  const std::vector<pid_t> keepers = sys::children_of(behind.zygote);
  std::vector<pid_t> spares;
  for (const pid_t keeper : keepers)
    for (const pid_t spare : sys::children_of(keeper)) spares.push_back(spare);
  return {{"zygote", describe({behind.zygote})}, {"keeper", describe(keepers)}, {"spare", describe(spares)}};
}

}  // namespace pyplaypen::bench
