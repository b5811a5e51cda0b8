#include "runtime/policy/pids_cap.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "runtime/sys/error.h"
#include "runtime/sys/proc.h"

namespace pyplaypen::policy {
namespace {

std::optional<std::string> try_read(const std::string& path) {
  try {
    return sys::read_small_file(path);
  } catch (const sys::Error&) {
    return std::nullopt;  // not mounted, or barred: then there is no cap that could be told of
  }
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool lists(std::string_view comma_separated, std::string_view word) {
  return std::ranges::count(split(comma_separated, ','), word) != 0;
}

struct Mount {
  std::string_view top;    // the directory of the hierarchy that is mounted
  std::string_view point;  // where
};

// A line of man 5 proc, mountinfo: ... root point options tags... - type source super_options.
std::optional<Mount> pids_mount(std::string_view mountinfo, std::string_view type) {
  for (const std::string_view line : split(mountinfo, '\n')) {
    const std::vector<std::string_view> fields = split(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 5 || fields.end() - dash < 4 || dash[1] != type) continue;
    if (type == "cgroup2" || lists(dash[3], "pids")) return Mount{fields[3], fields[4]};
  }
  return std::nullopt;
}

// The lowest of directory and everything above it up to `top`.
std::optional<uint64_t> lowest_cap(std::string directory, const std::string& top) {
  std::optional<uint64_t> lowest;
  while (true) {
    const std::string text = try_read(directory + "/pids.max").value_or("max");
    uint64_t value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc())
      lowest = std::min(value, lowest.value_or(value));
    if (directory.size() <= top.size()) return lowest;
    directory.resize(directory.rfind('/'));
  }
}

// The path of the cgroup below what is mounted; the whole path where they do not fit together, as
// when another namespace's /proc is seen.
std::string_view below(std::string_view path, std::string_view top) {
  if (path == "/" || path.starts_with("/..")) return {};
  return top != "/" && path.starts_with(top) ? path.substr(top.size()) : path;
}

}  // namespace

std::optional<uint64_t> pids_cap(const std::string& root) {
  const std::optional<std::string> groups = try_read(root + "/proc/self/cgroup");
  const std::optional<std::string> mounts = try_read(root + "/proc/self/mountinfo");
  if (!groups || !mounts) return std::nullopt;
  std::optional<uint64_t> lowest;
  for (const std::string_view line : split(*groups, '\n')) {  // number:controllers:path
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && !lists(controllers, "pids")) continue;
    const auto mount = pids_mount(*mounts, unified ? "cgroup2" : "cgroup");
    if (!mount) continue;
    const std::string top = root + std::string(mount->point);
    const auto cap = lowest_cap(top + std::string(below(line.substr(second + 1), mount->top)), top);
    if (cap) lowest = std::min(*cap, lowest.value_or(*cap));
  }
  return lowest;
}

}  // namespace pyplaypen::policy
