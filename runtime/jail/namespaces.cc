#include "runtime/jail/namespaces.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/jail/mounts.h"
#include "runtime/sys/bare.h"
#include "runtime/sys/channel.h"
#include "runtime/sys/child.h"
#include "runtime/sys/error.h"
#include "runtime/sys/raw.h"
#include "runtime/sys/unique_fd.h"

namespace pyplaypen {
namespace {

struct Row {
  std::string_view name;
  int flag;
};

// In the order of the enumerators.
constexpr std::array<Row, static_cast<size_t>(kLastNamespace) + 1> kRows = {{
    {"user", CLONE_NEWUSER},
    {"mount", CLONE_NEWNS},
    {"pid", CLONE_NEWPID},
    {"net", CLONE_NEWNET},
    {"ipc", CLONE_NEWIPC},
    {"uts", CLONE_NEWUTS},
    {"cgroup", CLONE_NEWCGROUP},
}};

// Runs in: the probe, on its parent's memory.
int wait_for_end_of_pipe(void* read_end) {
  char byte = 0;
  while (sys::bare_call(SYS_read, *static_cast<int*>(read_end), sys::address(&byte), 1) == -EINTR) {
  }
  return 0;
}

bool can_create(int flags) {
  auto [read_end, write_end] = sys::pipe_pair();
  sys::SharingChild probe;
  int fd = read_end.get();
  if (probe.try_start(wait_for_end_of_pipe, &fd, flags) != 0) return false;
  const bool mapped =
      (flags & CLONE_NEWUSER) == 0 ||
      jail::write_maps(probe.pid(), jail::make_maps(MapTo::kRoot, ::geteuid(), ::getegid())) == 0;
  // Its own copy of the writing end keeps it there, so it is killed rather than let go.
  probe.kill_and_reap();
  return mapped;
}

int write_file(const std::string& path, const std::string& text) {
  const sys::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return errno;
  return ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : errno;
}

std::string lines_of(const std::vector<jail::IdPair>& pairs) {
  std::string lines;
  for (const jail::IdPair& pair : pairs)
    lines += std::to_string(pair.inside) + " " + std::to_string(pair.outside) + " 1\n";
  return lines;
}

void add_to(std::vector<jail::IdPair>& pairs, jail::IdPair pair) {
  const bool taken = std::ranges::any_of(pairs, [&](const jail::IdPair& other) {
    return other.inside == pair.inside || other.outside == pair.outside;
  });
  if (!taken) pairs.push_back(pair);
}

}  // namespace

std::string_view namespace_name(Namespace one) { return kRows[static_cast<size_t>(one)].name; }

std::optional<Namespace> namespace_from_name(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].name == name) return static_cast<Namespace>(i);
  return std::nullopt;
}

std::string to_string(Namespaces set) {
  std::string text;
  for (size_t i = 0; i < kRows.size(); ++i)
    if (set.contains(static_cast<Namespace>(i)))
      text.append(text.empty() ? "" : ",").append(kRows[i].name);
  return text.empty() ? "none" : text;
}

Namespaces namespaces_supported() {
  Namespaces found;
  const int around = jail::can_create_without_user() ? 0 : CLONE_NEWUSER;
  for (size_t i = 0; i < kRows.size(); ++i)
    if (can_create(kRows[i].flag | around)) found.insert(static_cast<Namespace>(i));
  return found;
}

bool userns_available() { return can_create(CLONE_NEWUSER); }

namespace jail {

int clone_flags(Namespaces set) noexcept {
  int flags = 0;
  for (size_t i = 0; i < kRows.size(); ++i)
    if (set.contains(static_cast<Namespace>(i))) flags |= kRows[i].flag;
  return flags;
}

void IdMaps::add(IdPair user, IdPair group) {
  add_to(users, user);
  add_to(groups, group);
}

IdMaps make_maps(MapTo to, uid_t user, gid_t group) {
  const bool root = to == MapTo::kRoot;
  IdMaps maps;
  maps.add({root ? 0 : user, user}, {root ? 0 : group, group});
  return maps;
}

int write_maps(pid_t process, const IdMaps& maps) {
  const std::string directory = "/proc/" + std::to_string(process);
  if (const int error = write_file(directory + "/uid_map", lines_of(maps.users))) return error;
  // Without CAP_SETGID, groups may be mapped only where nobody can leave one that a file denies.
  if (!sys::raw::has_capability(CAP_SETGID))
    if (const int error = write_file(directory + "/setgroups", "deny")) return error;
  return write_file(directory + "/gid_map", lines_of(maps.groups));
}

Settled settle(const Inside& inside) noexcept {
  Settled settled;
  const auto failed = [&](int error, const char* at) {
    settled.error = error;
    settled.at = at;
    return settled;
  };
  const bool strict = inside.strictness == Strictness::kStrict;
  if (inside.namespaces.contains(Namespace::kMount)) {
    if (const int error = detach_mounts()) return failed(error, "mounts");
    if (inside.namespaces.contains(Namespace::kPid) && inside.proc != ProcMount::kNever) {
      settled.gaps.proc = mount_own_proc();
      if (settled.gaps.proc != 0 && strict && inside.proc == ProcMount::kRequired)
        return failed(settled.gaps.proc, "/proc");
    }
  }
  if (inside.namespaces.contains(Namespace::kUts) && !inside.hostname.empty()) {
    settled.gaps.hostname = set_host_name(inside.hostname.data(), inside.hostname.size());
    if (settled.gaps.hostname != 0 && strict) return failed(settled.gaps.hostname, "hostname");
  }
  // Where it cannot be raised, there is one interface less; there is no way out either way.
  if (inside.namespaces.contains(Namespace::kNet)) (void)raise_loopback();
  return settled;
}

int set_host_name(const char* name, size_t size) noexcept {
  return ::sethostname(name, size) == 0 ? 0 : errno;
}

int raise_loopback() noexcept {
  const sys::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno;
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", sizeof "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  return ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0 ? 0 : errno;
}

bool can_create_without_user() { return sys::raw::has_capability(CAP_SYS_ADMIN); }

}  // namespace jail
}  // namespace pyplaypen
