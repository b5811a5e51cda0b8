// Looks at other processes through /proc, and waits for what a test expects of them.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace pyplaypen {

// Processes with `text` in their command line.
inline std::vector<pid_t> processes_with(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "cmdline");
    std::string line;
    std::getline(file, line);
    if (line.find(text) != std::string::npos && std::stoi(name) != ::getpid()) found.push_back(std::stoi(name));
  }
  return found;
}

// Field of /proc/<pid>/status, as "PPid"; empty when the process is gone.
inline std::string status_field(pid_t pid, const std::string& field) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(field + ":")) return line.substr(line.find_first_not_of(" \t", field.size() + 1));
  return {};
}

// Gone, or a zombie that somebody else has to reap.
inline bool is_dead(pid_t pid) {
  const std::string state = status_field(pid, "State");
  return state.empty() || state[0] == 'Z' || state[0] == 'X';
}

// What other processes do shows on no descriptor of ours, so this looks again and again; the deadline
// only ends a test that has failed.
inline bool comes_true(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace pyplaypen
