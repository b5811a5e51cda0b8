#include "runtime/jail/cgroup.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <string_view>

#include "runtime/sys/directory.h"
#include "runtime/sys/error.h"
#include "runtime/sys/raw.h"

namespace pyplaypen::jail {
namespace {

using sys::UniqueFd;

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr std::string_view kPrefix = "pyplaypen-";
// Only a process in an uninterruptible sleep outlives SIGKILL by more than some ms.
constexpr std::chrono::seconds kPatience{10};

UniqueFd try_open(int directory, const char* name, int flags) {
  return UniqueFd(::openat(directory, name, flags | O_CLOEXEC));
}

void write_number(const UniqueFd& file, uint64_t value, const char* what) {
  char text[24];
  const char* const end = std::to_chars(text, text + sizeof text, value).ptr;
  sys::check(::pwrite(file.get(), text, static_cast<size_t>(end - text), 0), "write", what);
}

// What this kernel or this file does not have, or does not take, is gone without.
void write_if_there(int directory, const char* name, std::string_view text) {
  const UniqueFd file = try_open(directory, name, O_WRONLY);
  if (file) (void)!::write(file.get(), text.data(), text.size());
}

std::string read_all(int directory, const char* name) {
  const UniqueFd file = try_open(directory, name, O_RDONLY);
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; file && (got = ::read(file.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  return text;
}

std::vector<pid_t> members(int directory) {
  const std::string text = read_all(directory, "cgroup.procs");
  std::vector<pid_t> pids;
  for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
    pid_t pid = 0;
    const auto parsed = std::from_chars(at, end, pid);
    if (parsed.ec == std::errc() && pid > 0) pids.push_back(pid);  // 0: of a PID namespace that we do not see
    at = parsed.ptr + 1;
  }
  return pids;
}

// v2: controllers count in a group only where its parent says so. Without one the group does not have its
// files, which is how that shows.
void let_count(const std::string& parent) {
  const UniqueFd directory(::open(parent.c_str(), kDirectoryFlags));
  if (!directory) sys::throw_errno("open", parent);
  write_if_there(directory.get(), "cgroup.subtree_control", "+memory");
  write_if_there(directory.get(), "cgroup.subtree_control", "+pids");
}

}  // namespace

Cgroup Cgroup::make(const std::vector<std::string>& parents, const std::string& name) {
  std::vector<std::string> directories;
  try {
    for (const std::string& parent : parents) {
      let_count(parent);
      std::string directory = parent + "/" + name;
      if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) sys::throw_errno("mkdir", directory);
      directories.push_back(std::move(directory));
    }
    return Cgroup(directories);
  } catch (...) {
    for (const std::string& made : directories) ::rmdir(made.c_str());
    throw;
  }
}

Cgroup::Cgroup(std::vector<std::string> directories) : paths_(std::move(directories)) {
  for (const std::string& path : paths_) {
    UniqueFd directory(sys::check(::open(path.c_str(), kDirectoryFlags), "open", path));
    const int at = directory.get();
    entrances_.emplace_back(sys::check(::openat(at, "cgroup.procs", O_WRONLY | O_CLOEXEC), "open", path + "/cgroup.procs"));
    if (UniqueFd file = try_open(at, "pids.max", O_WRONLY)) process_limit_ = std::move(file);
    if (UniqueFd file = try_open(at, "memory.max", O_WRONLY)) {
      memory_limit_ = std::move(file);
      memory_events_ = try_open(at, "memory.events", O_RDONLY);
      write_if_there(at, "memory.swap.max", "0");
    } else if (UniqueFd old = try_open(at, "memory.limit_in_bytes", O_WRONLY)) {
      memory_limit_ = std::move(old);
      memory_events_ = try_open(at, "memory.oom_control", O_RDONLY);
      write_if_there(at, "memory.swappiness", "0");
    }
    directories_.push_back(std::move(directory));
  }
}

Cgroup::~Cgroup() {
  if (directories_.empty()) return;  // moved away
  end_all();
  for (const std::string& path : paths_) ::rmdir(path.c_str());  // what stays is for remove_stale_cgroups()
}

std::vector<int> Cgroup::entrances() const {
  std::vector<int> fds;
  for (const UniqueFd& entrance : entrances_) fds.push_back(entrance.get());
  return fds;
}

void Cgroup::limit(uint64_t memory_bytes, uint64_t processes) {
  if (process_limit_ && processes != processes_) {
    write_number(process_limit_, processes, "pids.max");
    processes_ = processes;
  }
  if (memory_limit_ && memory_bytes != memory_bytes_) {
    write_number(memory_limit_, memory_bytes, "the memory limit of a cgroup");
    memory_bytes_ = memory_bytes;
  }
}

uint64_t Cgroup::memory_kills() const {
  char text[512];
  const ssize_t got = memory_events_ ? ::pread(memory_events_.get(), text, sizeof text, 0) : 0;
  constexpr std::string_view kKey = "oom_kill ";
  const std::string_view all(text, got > 0 ? static_cast<size_t>(got) : 0);
  const size_t at = all.find(kKey);
  uint64_t count = 0;
  if (at != std::string_view::npos) std::from_chars(all.data() + at + kKey.size(), all.data() + all.size(), count);
  return count;
}

bool Cgroup::has_members() const {
  return std::ranges::any_of(directories_, [](const UniqueFd& one) { return !members(one.get()).empty(); });
}

void Cgroup::kill_members() const {
  const int directory = directories_.front().get();  // whoever is in one is in all
  if (const UniqueFd kill_file = try_open(directory, "cgroup.kill", O_WRONLY))  // v2, Linux 5.14
    if (::write(kill_file.get(), "1", 1) == 1) return;
  for (const pid_t pid : members(directory)) {
    const UniqueFd process(sys::raw::pidfd_open(pid, 0));
    // Looked up again: a PID that was used anew since the first look is not in the group.
    const std::vector<pid_t> now = members(directory);
    if (std::ranges::find(now, pid) == now.end()) continue;
    if (process) {
      (void)sys::raw::pidfd_send_signal(process.get(), SIGKILL);  // gone is as good
    } else {
      ::kill(pid, SIGKILL);
    }
  }
}

void Cgroup::end_all() noexcept {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  try {
    while (has_members() && std::chrono::steady_clock::now() < give_up) {
      kill_members();
      ::poll(nullptr, 0, 1);  // v1 tells nobody when a group has become empty
    }
  } catch (const std::exception&) {
    // Out of memory. The keeper and the zygote end what they know by themselves.
  }
}

int enter_cgroup(int entrance) noexcept { return ::write(entrance, "0", 1) == 1 ? 0 : errno; }

void remove_stale_cgroups(const std::string& parent) {
  const UniqueFd directory(::open(parent.c_str(), kDirectoryFlags));
  if (!directory) return;
  std::vector<std::string> stale;
  sys::DirectoryReader reader(directory.get());
  while (const auto entry = reader.next()) {
    if (!entry->name.starts_with(kPrefix)) continue;
    const std::string_view rest = entry->name.substr(kPrefix.size());
    pid_t pid = 0;
    const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr == rest.data() + rest.size() || *parsed.ptr != '-' || pid <= 0) continue;
    if (::kill(pid, 0) != 0 && errno == ESRCH) stale.emplace_back(entry->name);
  }
  for (const std::string& name : stale) ::unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR);  // in use: it stays
}

}  // namespace pyplaypen::jail
