#include "runtime/policy/features.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <mutex>

#include "runtime/policy/root_rights.h"
#include "runtime/sys/proc.h"
#include "runtime/sys/raw.h"
#include "runtime/sys/unique_fd.h"

namespace pyplaypen::policy {
namespace {

bool probe_pidfd() {
  const sys::UniqueFd fd(sys::raw::pidfd_open(::getpid(), 0));
  return fd && sys::raw::pidfd_send_signal(fd.get(), 0) == 0;
}

// A range that holds nothing: only the call itself is tried.
bool probe_close_range() { return sys::raw::close_range(~0U, ~0U, 0) == 0; }

int probe_landlock() {
  const int abi = sys::raw::landlock_create_ruleset(nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi > 0 ? abi : 0;
}

bool write_file(const char* path, const char* text, size_t size) {
  const sys::UniqueFd fd(::open(path, O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), text, size) == static_cast<ssize_t>(size);
}

// Raw clone with exit signal 0: the host's SIGCHLD handler and waitpid(-1) never see this child.
// It does nothing but unshare and wait.
bool probe_user_namespace() {
  int ready[2];
  int go[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) return false;
  const sys::UniqueFd ready_read(ready[0]);
  sys::UniqueFd ready_write(ready[1]);
  if (::pipe2(go, O_CLOEXEC) != 0) return false;
  const sys::UniqueFd go_read(go[0]);
  sys::UniqueFd go_write(go[1]);
  const pid_t child = static_cast<pid_t>(::syscall(SYS_clone, 0, nullptr, nullptr, nullptr, 0));
  if (child < 0) return false;
  if (child == 0) {
    char byte = ::unshare(CLONE_NEWUSER) == 0 ? 'y' : 'n';
    ::close(go[1]);
    (void)!::write(ready[1], &byte, 1);  // nobody left to tell when this fails
    (void)!::read(go[0], &byte, 1);
    ::_exit(0);
  }
  ready_write.reset();
  char byte = 'n';
  bool available = ::read(ready_read.get(), &byte, 1) == 1 && byte == 'y';
  if (available) {
    char path[64];
    char map[64];
    std::snprintf(path, sizeof path, "/proc/%d/uid_map", child);
    const int size = std::snprintf(map, sizeof map, "%u %u 1\n", ::geteuid(), ::geteuid());
    available = write_file(path, map, static_cast<size_t>(size));
  }
  go_write.reset();
  int status = 0;
  while (::waitpid(child, &status, __WALL) < 0 && errno == EINTR) {
  }
  return available;
}

Features probe() {
  Features found;
  found.pidfd = probe_pidfd();
  found.close_range = probe_close_range();
  found.children_file = sys::has_children_file();
  found.landlock_abi = probe_landlock();
  found.can_drop_uid = can_become_others();
  found.user_namespace = probe_user_namespace();
  return found;
}

}  // namespace

const Features& features() {
  static std::mutex mutex;
  static std::map<uid_t, Features> found;  // by who asks: a host may drop its rights after the first look
  const std::scoped_lock lock(mutex);
  const auto [at, is_new] = found.try_emplace(::geteuid());
  if (is_new) at->second = probe();
  return at->second;
}

}  // namespace pyplaypen::policy
