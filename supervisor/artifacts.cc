#include "supervisor/artifacts.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>

#include "runtime/sys/directory.h"
#include "runtime/sys/error.h"
#include "runtime/sys/hash.h"
#include "runtime/sys/remove_tree.h"
#include "runtime/sys/unique_fd.h"
#include "runtime/wire/utf8.h"
#include "supervisor/mime_type.h"

namespace pyplaypen::supervisor {
namespace {

using sys::check;
using sys::UniqueFd;

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// Not blocking: should a FIFO ever stand where a file was, its open must not wait.
constexpr int kFileFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
constexpr size_t kBlock = size_t{256} << 10;
constexpr size_t kMostBytesInMessage = 200;
constexpr int kSuffixesToTry = 16;

// The bytes with each one that is not UTF-8 as \xNN.
std::string printable(std::string_view bytes) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  while (at < end) {
    const wire::Utf8Step step = wire::utf8_step(at, end);
    if (step.valid) {
      text.append(at, step.length);
    } else {
      for (unsigned i = 0; i < step.length; ++i) {
        const auto byte = static_cast<unsigned char>(at[i]);
        text.append({'\\', 'x', kHex[byte >> 4], kHex[byte & 15]});
      }
    }
    at += step.length;
  }
  return text;
}

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view part = bytes.substr(i, 3);
    unsigned group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < part.size() ? static_cast<unsigned char>(part[k]) : 0U);
    for (size_t k = 0; k < 4; ++k)
      text.push_back(k <= part.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=');
  }
  return text;
}

std::string_view last_component(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Everything above the last component; empty for a path of one.
std::string_view directory_part(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

Artifact describe(std::string_view raw_path, uint64_t bytes) {
  const std::string_view raw_name = last_component(raw_path);
  Artifact artifact;
  artifact.path = printable(raw_path);
  artifact.name = printable(raw_name);
  artifact.bytes = bytes;
  artifact.mime_type = mime_type_of(raw_name);
  if (!wire::is_utf8(raw_path)) artifact.path_bytes_base64 = base64(raw_path);
  if (!wire::is_utf8(raw_name)) artifact.name_bytes_base64 = base64(raw_name);
  return artifact;
}

std::string_view kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFIFO:
      return "fifo";
    case S_IFSOCK:
      return "socket";
    case S_IFCHR:
      return "character device";
    case S_IFBLK:
      return "block device";
    default:
      return "unknown";
  }
}

// Depth first with one descriptor, whatever the depth: down by name, up by "..".
class Search {
 public:
  Search(int workspace, const Limits& limits) : workspace_(workspace), limits_(limits) {}

  Collected run() {
    struct stat top;
    check(::fstat(workspace_, &top), "fstat", "workspace");
    if ((top.st_mode & S_IRWXU) != S_IRWXU)
      check(::fchmod(workspace_, S_IRWXU), "fchmod", "workspace");
    device_ = top.st_dev;
    levels_.push_back({top.st_ino, 0, {}});
    read_directory();
    while (found_.breach.empty() && !levels_.empty()) {
      if (levels_.back().still_to_visit.empty())
        ascend();
      else
        descend();
    }
    if (!found_.breach.empty()) return {{}, {}, {}, 0, std::move(found_.breach)};
    sort();
    return std::move(found_);
  }

 private:
  struct Level {
    ino_t inode;
    size_t path_size;  // of path_ above this directory
    std::vector<std::string> still_to_visit;
  };

  [[nodiscard]] int here() const { return current_ ? current_.get() : workspace_; }

  void breach(std::string sentence) {
    if (found_.breach.empty()) found_.breach = std::move(sentence);
  }

  // For messages: the path, or the end of a long one.
  [[nodiscard]] std::string quoted(std::string_view name) const {
    const std::string path = path_ + std::string(name);
    std::string_view shown = path;
    std::string text = "'";
    if (shown.size() > kMostBytesInMessage) {
      shown.remove_prefix(shown.size() - kMostBytesInMessage);
      while (!shown.empty() && (static_cast<unsigned char>(shown.front()) & 0xc0) == 0x80)
        shown.remove_prefix(1);
      text += "...";
    }
    return text + printable(shown) + "'";
  }

  void descend() {
    const std::string name = std::move(levels_.back().still_to_visit.back());
    levels_.back().still_to_visit.pop_back();
    UniqueFd below(::openat(here(), name.c_str(), kDirectoryFlags));
    if (!below) sys::throw_errno("openat", printable(name));
    struct stat status;
    check(::fstat(below.get(), &status), "fstat", printable(name));
    current_ = std::move(below);
    levels_.push_back({status.st_ino, path_.size(), {}});
    path_.append(name).push_back('/');
    read_directory();
  }

  void ascend() {
    path_.resize(levels_.back().path_size);
    levels_.pop_back();
    if (levels_.size() <= 1) {
      current_.reset();
      return;
    }
    UniqueFd above(check(::openat(here(), "..", kDirectoryFlags), "openat", ".."));
    struct stat status;
    check(::fstat(above.get(), &status), "fstat", "..");
    if (status.st_ino != levels_.back().inode || status.st_dev != device_)
      return breach("the workspace changed while it was read");
    current_ = std::move(above);
  }

  void read_directory() {
    sys::DirectoryReader reader(here());
    while (const auto entry = reader.next()) {
      judge(entry->name);
      if (!found_.breach.empty()) return;
    }
    // The code may have removed its current directory; what is gone leaves nothing.
    if (reader.error() != 0 && reader.error() != ENOENT)
      throw sys::Error(reader.error(), "getdents64", printable(path_));
  }

  void judge(std::string_view name) {
    if (name.starts_with('.')) return count_other();
    struct stat status;
    if (::fstatat(here(), name.data(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) return;  // a cleaner of the temp directory took it
      sys::throw_errno("fstatat", printable(name));
    }
    if (S_ISREG(status.st_mode)) {
      judge_file(name, status);
    } else if (S_ISDIR(status.st_mode)) {
      // Files are not compared: on overlayfs they may show another device than their directory.
      if (status.st_dev != device_) return breach(quoted(name) + " is on another file system");
      if ((status.st_mode & S_IRWXU) != S_IRWXU)
        check(::fchmodat(here(), name.data(), S_IRWXU, 0), "fchmodat", printable(name));
      levels_.back().still_to_visit.emplace_back(name);
      count_other();
    } else if (S_ISLNK(status.st_mode)) {
      breach(quoted(name) + " is a symbolic link; only regular files may be left behind");
    } else {
      skip(name, status.st_mode);
      count_other();
    }
  }

  void judge_file(std::string_view name, const struct stat& status) {
    const auto size = static_cast<uint64_t>(status.st_size);
    if (status.st_nlink > 1)
      return breach(quoted(name) + " is a hard link, a file with " +
                    std::to_string(status.st_nlink) +
                    " names; only regular files with one name may be left behind");
    if (size > limits_.file_bytes)
      return breach(quoted(name) + " has " + std::to_string(size) +
                    " bytes, more than limit file_bytes=" + std::to_string(limits_.file_bytes));
    if (found_.artifacts.size() >= limits_.artifact_count)
      return breach("more files were left behind than limit artifact_count=" +
                    std::to_string(limits_.artifact_count));
    if (size > limits_.artifact_bytes - bytes_)
      return breach("the files left behind have more bytes together than limit artifact_bytes=" +
                    std::to_string(limits_.artifact_bytes));
    if (path_.size() + name.size() >= PATH_MAX)
      return breach(quoted(name) + " has a path of " + std::to_string(path_.size() + name.size()) +
                    " bytes, more than a system call takes");
    bytes_ += size;
    found_.raw_paths.push_back(path_ + std::string(name));
    found_.artifacts.push_back(describe(found_.raw_paths.back(), size));
  }

  void skip(std::string_view name, mode_t mode) {
    if (found_.skipped.size() < kMostSkipped && path_.size() + name.size() < PATH_MAX)
      found_.skipped.push_back({printable(path_ + std::string(name)), std::string(kind_of(mode))});
    else
      ++found_.skipped_beyond;
  }

  void count_other() {
    if (++others_ > kMostOtherEntries)
      breach("more than " + std::to_string(kMostOtherEntries) +
             " directories, dot files and devices were left behind");
  }

  void sort() {
    std::vector<size_t> order(found_.artifacts.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return found_.raw_paths[a] < found_.raw_paths[b]; });
    Collected sorted;
    for (const size_t i : order) {
      sorted.artifacts.push_back(std::move(found_.artifacts[i]));
      sorted.raw_paths.push_back(std::move(found_.raw_paths[i]));
    }
    found_.artifacts = std::move(sorted.artifacts);
    found_.raw_paths = std::move(sorted.raw_paths);
    std::sort(found_.skipped.begin(), found_.skipped.end(),
              [](const Skipped& a, const Skipped& b) { return a.path < b.path; });
  }

  const int workspace_;
  const Limits& limits_;
  dev_t device_ = 0;
  UniqueFd current_;  // empty at the workspace itself
  std::string path_;  // of the current directory, each component with its '/'
  std::vector<Level> levels_;
  uint64_t bytes_ = 0;
  uint64_t others_ = 0;
  Collected found_;
};

struct OpenFile {
  UniqueFd fd;
  mode_t mode;  // as the code left it
};

OpenFile open_regular(int directory, const std::string& name) {
  struct stat before;
  check(::fstatat(directory, name.c_str(), &before, AT_SYMLINK_NOFOLLOW), "fstatat",
        printable(name));
  if (!S_ISREG(before.st_mode)) throw sys::Error(EINVAL, "open", printable(name));
  UniqueFd fd(::openat(directory, name.c_str(), kFileFlags));
  if (!fd && errno == EACCES && ::fchmodat(directory, name.c_str(), S_IRUSR | S_IWUSR, 0) == 0)
    fd.reset(::openat(directory, name.c_str(), kFileFlags));
  struct stat now;
  if (!fd || ::fstat(fd.get(), &now) != 0) sys::throw_errno("openat", printable(name));
  if (now.st_ino != before.st_ino || now.st_nlink != 1)
    throw sys::Error(ESTALE, "openat", printable(name));
  return {std::move(fd), before.st_mode};
}

// Calls `visit(component)` for each directory of a relative path.
template <typename Visit>
void each_component(std::string_view directories, Visit visit) {
  while (!directories.empty()) {
    const size_t slash = std::min(directories.find('/'), directories.size());
    visit(std::string(directories.substr(0, slash)));
    directories.remove_prefix(std::min(slash + 1, directories.size()));
  }
}

UniqueFd open_directories(int top, std::string_view directories) {
  UniqueFd at(check(::openat(top, ".", kDirectoryFlags), "openat", "."));
  each_component(directories, [&](const std::string& name) {
    at.reset(check(::openat(at.get(), name.c_str(), kDirectoryFlags), "openat", printable(name)));
  });
  return at;
}

// Calls `visit(directory, index)` for each artifact, opening each directory once for all its files.
template <typename Open, typename Visit>
void each_artifact(const Collected& collected, Open open, Visit visit) {
  std::string_view opened = "/";  // no artifact's directory
  for (size_t i = 0; i < collected.raw_paths.size(); ++i) {
    const std::string_view directories = directory_part(collected.raw_paths[i]);
    if (directories != opened) open(directories);
    opened = directories;
    visit(i);
  }
}

template <typename Take>
void read_all(int fd, Take take) {
  std::string block(kBlock, '\0');
  for (;;) {
    const ssize_t got =
        check(sys::retry_eintr([&] { return ::read(fd, block.data(), block.size()); }), "read");
    if (got == 0) return;
    take(std::string_view(block).substr(0, static_cast<size_t>(got)));
  }
}

struct Owner {
  uid_t uid;
  gid_t gid;
};

// Where artifacts go: a fresh directory that is removed again unless it is kept.
class Destination {
 public:
  // Only root gives files away; others own what they make and what their calls made.
  Destination(int parent, std::string name, Owner owner)
      : parent_(parent), name_(std::move(name)), owner_(owner), give_(::geteuid() == 0) {}
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;
  ~Destination() {
    if (made_) sys::remove_tree(parent_, name_);
  }

  // False when the name is taken.
  bool make(mode_t mode) {
    if (::mkdirat(parent_, name_.c_str(), mode) != 0) {
      if (errno == EEXIST) return false;
      sys::throw_errno("mkdirat", printable(name_));
    }
    made_ = true;
    root_ = open_own(parent_, name_);
    return true;
  }

  void keep() { made_ = false; }

  void take(int workspace, const Collected& collected) {
    UniqueFd from;
    UniqueFd to;
    each_artifact(
        collected,
        [&](std::string_view directories) {
          from = open_directories(workspace, directories);
          to = make_directories(directories);
        },
        [&](size_t i) {
          take_file(from.get(), to.get(), std::string(last_component(collected.raw_paths[i])));
        });
  }

 private:
  UniqueFd open_own(int parent, const std::string& name) const {
    UniqueFd fd(check(::openat(parent, name.c_str(), kDirectoryFlags), "openat", printable(name)));
    give(fd.get(), name);
    return fd;
  }

  void give(int fd, const std::string& name) const {
    if (give_) check(::fchown(fd, owner_.uid, owner_.gid), "fchown", printable(name));
  }

  UniqueFd make_directories(std::string_view directories) const {
    UniqueFd at(check(::openat(root_.get(), ".", kDirectoryFlags), "openat", "."));
    each_component(directories, [&](const std::string& name) {
      if (::mkdirat(at.get(), name.c_str(), 0777) == 0) {
        at = open_own(at.get(), name);
      } else {
        if (errno != EEXIST) sys::throw_errno("mkdirat", printable(name));
        at.reset(
            check(::openat(at.get(), name.c_str(), kDirectoryFlags), "openat", printable(name)));
      }
    });
    return at;
  }

  void take_file(int from, int to, const std::string& name) const {
    const OpenFile source = open_regular(from, name);
    const mode_t mode = (source.mode & (S_IRWXU | S_IRWXG | S_IROTH | S_IXOTH)) | S_IRUSR | S_IWUSR;
    // Owner, then mode, while nobody else can reach it: a change of owner drops set-user-ID.
    finish(source.fd.get(), name, mode);
    if (::renameat(from, name.c_str(), to, name.c_str()) == 0) return;
    if (errno != EXDEV) sys::throw_errno("renameat", printable(name));
    const UniqueFd copy(
        check(::openat(to, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       S_IRUSR | S_IWUSR),
              "openat", printable(name)));
    read_all(source.fd.get(), [&](std::string_view bytes) {
      while (!bytes.empty()) {
        const ssize_t written =
            check(sys::retry_eintr([&] { return ::write(copy.get(), bytes.data(), bytes.size()); }),
                  "write", printable(name));
        bytes.remove_prefix(static_cast<size_t>(written));
      }
    });
    finish(copy.get(), name, mode);
  }

  void finish(int fd, const std::string& name, mode_t mode) const {
    give(fd, name);
    check(::fchmod(fd, mode), "fchmod", printable(name));
  }

  const int parent_;
  const std::string name_;
  const Owner owner_;
  const bool give_;
  bool made_ = false;
  UniqueFd root_;
};

// One component of a path, and nothing that leads elsewhere.
bool is_one_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= NAME_MAX &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

std::string absolute(const std::string& path) {
  std::filesystem::path full = std::filesystem::absolute(path);
  // "a/.." is not "." where a is a link; without "..", taking "." out changes nothing.
  if (std::find(full.begin(), full.end(), "..") == full.end()) full = full.lexically_normal();
  std::string text = full.string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

std::string below(const std::string& directory, const std::string& name) {
  return directory.ends_with('/') ? directory + name : directory + '/' + name;
}

// A problem's sentence when some artifact would have a path below `root` that nobody could open.
std::string path_problem(const Collected& collected, const std::string& root) {
  for (const std::string& path : collected.raw_paths)
    if (root.size() + 1 + path.size() >= PATH_MAX)
      return "an artifact's path below " + printable(root) + " would have " +
             std::to_string(root.size() + 1 + path.size()) +
             " bytes, more than a system call takes";
  return {};
}

std::string id_problem(const std::string& request_id) {
  return "the request id '" + printable(request_id) + "' cannot name a directory";
}

}  // namespace

Collected collect(int workspace, const Limits& limits) { return Search(workspace, limits).run(); }

void hash_artifacts(int directory, Collected& collected) {
  UniqueFd at;
  each_artifact(
      collected,
      [&](std::string_view directories) { at = open_directories(directory, directories); },
      [&](size_t i) {
        const OpenFile file =
            open_regular(at.get(), std::string(last_component(collected.raw_paths[i])));
        sys::Sha256 hash;
        read_all(file.fd.get(), [&](std::string_view bytes) { hash.update(bytes); });
        collected.artifacts[i].sha256 = hash.hex();
      });
}

Kept move_to(int workspace, const Collected& collected, const std::string& artifact_root,
             const std::string& request_id) {
  if (collected.artifacts.empty()) return {};
  if (!is_one_name(request_id)) return {{}, id_problem(request_id)};
  const std::string parent_path = absolute(artifact_root);
  std::string root = below(parent_path, request_id);
  if (std::string problem = path_problem(collected, root); !problem.empty())
    return {{}, std::move(problem)};
  std::error_code error;
  std::filesystem::create_directories(parent_path, error);
  if (error) throw sys::Error(error.value(), "mkdir", parent_path);
  const UniqueFd parent(
      check(::open(parent_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open", parent_path));
  struct stat status;
  check(::fstat(parent.get(), &status), "fstat", parent_path);
  Destination destination(parent.get(), request_id, {status.st_uid, status.st_gid});
  if (!destination.make(0777))
    return {{},
            printable(root) + " is there already; a request's artifacts go to a fresh directory"};
  destination.take(workspace, collected);
  destination.keep();
  return {std::move(root), {}};
}

Kept keep_under(int workspace, const Collected& collected, const std::string& temp_directory,
                const std::string& request_id) {
  if (collected.artifacts.empty()) return {};
  const std::string parent_path = absolute(temp_directory);
  const std::string plain_name = "pyplaypen-artifacts-" + request_id;
  if (!is_one_name(plain_name)) return {{}, id_problem(request_id)};
  const UniqueFd parent(
      check(::open(parent_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open", parent_path));
  std::random_device random;
  std::string name = plain_name;
  for (int i = 0; i < kSuffixesToTry; ++i, name = plain_name + '-' + std::to_string(random())) {
    std::string root = below(parent_path, name);
    if (std::string problem = path_problem(collected, root); !problem.empty())
      return {{}, std::move(problem)};
    Destination destination(parent.get(), name, {::geteuid(), ::getegid()});
    if (!destination.make(0700)) continue;
    destination.take(workspace, collected);
    destination.keep();
    return {std::move(root), {}};
  }
  return {{}, "no name beginning " + plain_name + " is free in " + printable(parent_path)};
}

}  // namespace pyplaypen::supervisor
