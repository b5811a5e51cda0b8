#include "runtime/sys/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "runtime/sys/error.h"
#include "runtime/sys/unique_fd.h"

namespace pyplaypen::sys {
namespace {

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

template <typename Visit>
void each_number(const char* path, Visit visit) {
  std::unique_ptr<DIR, CloseDir> dir(::opendir(path));
  if (!dir) throw_errno("opendir", path);
  while (const dirent* entry = ::readdir(dir.get())) {
    if (entry->d_name[0] == '.') continue;
    visit(std::atoi(entry->d_name), ::dirfd(dir.get()));
  }
}

void append_pids(std::string_view text, std::vector<pid_t>& pids) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    pid_t pid = 0;
    const auto parsed = std::from_chars(at, end, pid);
    if (parsed.ec == std::errc()) pids.push_back(pid);
    at = parsed.ptr + 1;
  }
}

constexpr char kChildrenFile[] = "/proc/thread-self/children";

}  // namespace

int thread_count() {
  int count = 0;
  each_number("/proc/self/task", [&](int, int) { ++count; });
  return count;
}

uint64_t mapped_bytes() {
  const std::string text = read_small_file("/proc/self/statm");
  uint64_t pages = 0;
  std::from_chars(text.data(), text.data() + text.size(), pages);
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::vector<int> open_fds() {
  std::vector<int> fds;
  each_number("/proc/self/fd", [&](int fd, int own) {
    if (fd != own) fds.push_back(fd);
  });
  std::sort(fds.begin(), fds.end());
  return fds;
}

std::vector<pid_t> children() {
  std::vector<pid_t> pids;
  if (has_children_file()) append_pids(read_small_file(kChildrenFile), pids);
  return pids;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> pids;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  try {
    each_number(tasks.c_str(), [&](int tid, int) {
      append_pids(read_small_file(tasks + "/" + std::to_string(tid) + "/children"), pids);
    });
  } catch (const Error&) {
    // It, or one of its threads, ended while we looked: what it left is somebody else's child now.
  }
  return pids;
}

bool has_children_file() { return ::access(kChildrenFile, R_OK) == 0; }

std::string read_small_file(const std::string& path) {
  const UniqueFd fd(check(::open(path.c_str(), O_RDONLY | O_CLOEXEC), "open", path));
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got =
        check(retry_eintr([&] { return ::read(fd.get(), buffer, sizeof buffer); }), "read", path);
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace pyplaypen::sys
