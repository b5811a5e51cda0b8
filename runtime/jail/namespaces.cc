#include "runtime/jail/namespaces.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

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
      jail::write_maps(probe.pid(), jail::make_map(MapTo::kRoot, ::geteuid(), ::getegid())) == 0;
  // Its own copy of the writing end keeps it there, so it is killed rather than let go.
  probe.kill_and_reap();
  return mapped;
}

int write_file(const std::string& path, const std::string& text) {
  const sys::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return errno;
  return ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : errno;
}

std::string map_line(uint32_t inside, uint32_t outside) {
  return std::to_string(inside) + " " + std::to_string(outside) + " 1\n";
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

IdMap make_map(MapTo to, uid_t user, gid_t group) {
  const bool root = to == MapTo::kRoot;
  return {root ? 0 : user, root ? 0 : group, user, group};
}

int write_maps(pid_t process, const IdMap& map, const std::string& extra_uids,
               const std::string& extra_gids) {
  const std::string directory = "/proc/" + std::to_string(process);
  if (const int error = write_file(directory + "/uid_map", map_line(map.uid_inside, map.uid_outside) + extra_uids))
    return error;
  // Without CAP_SETGID, groups may be mapped only where nobody can leave one that a file denies.
  if (!sys::raw::has_capability(CAP_SETGID))
    if (const int error = write_file(directory + "/setgroups", "deny")) return error;
  return write_file(directory + "/gid_map", map_line(map.gid_inside, map.gid_outside) + extra_gids);
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
