#include "supervisor/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <system_error>

#include "pyplaypen/privilege.h"
#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"
#include "runtime/sys/raw.h"

namespace pyplaypen::supervisor {
namespace {

// Beside the call's channel, which a command has not.
constexpr size_t kFdsAlways = 3;
constexpr size_t kFdsWithPidfd = 4;
constexpr size_t kFdsWithProc = 7;

// What of a slot's cgroup is not the call's: the keeper, and the pages that it and the forked interpreter
// have made their own before the call: 3.4 MB with nothing preloaded, by memory.usage_in_bytes.
constexpr uint64_t kOwnProcesses = 1;
constexpr uint64_t kOwnBytes = uint64_t{32} << 20;

// The PIDs in a "children" file, two at the most: none, one, or more is all that matters.
int read_children(int fd, pid_t (&pids)[2]) {
  char text[64];
  const ssize_t got = ::pread(fd, text, sizeof text, 0);
  if (got < 0) return -1;
  int count = 0;
  const char* at = text;
  const char* const end = text + got;
  while (count < 2 && at < end) {
    const auto parsed = std::from_chars(at, end, pids[count]);
    if (parsed.ec != std::errc()) break;
    ++count;
    at = parsed.ptr + 1;
  }
  return count;
}

}  // namespace

void Keeper::order(Order what, const std::string& frame, std::span<const int> fds) {
  outstanding_.push_back(what);
  if (!sys::send_all(channel_.get(), frame, fds)) fail("the slot's keeper has ended");
}

void Keeper::spawn(wire::WarmUp warm_up) {
  wire::Spawn message;
  message.warm_up = warm_up;
  order(Order::kSpawn, wire::framed(message));
}

void Keeper::launch(const wire::Launch& launch, std::span<const int> fds) {
  if (has_spare() || spawning()) reap();
  order(Order::kLaunch, wire::framed(launch), fds);
}

void Keeper::reap() {
  reaped_.reset();  // of a call before, for which nobody waited
  leader_ended_ = false;
  order(Order::kReap, wire::framed(wire::Reap{}));
  spare_.reset();  // after the order: the keeper works while we close its descriptors
}

void Keeper::limit(const Limits& limits) {
  if (cgroup == nullptr) return;
  cgroup->limit(add_to_limit(limits.memory_bytes, kOwnBytes), add_to_limit(limits.process_count, kOwnProcesses));
}

bool Keeper::ran_out_of_memory() {
  if (cgroup == nullptr) return false;
  const uint64_t before = std::exchange(memory_kills_, cgroup->memory_kills());
  return memory_kills_ > before;
}

void Keeper::pump() {
  while (!failure_) {
    const sys::Received received = sys::receive(channel_.get(), reader_.buffer(), &fds_, false);
    while (const auto frame = reader_.next()) handle(*frame);
    if (!reader_.error().empty()) return fail(reader_.error());
    if (received == sys::Received::kEnd) return fail("the slot's keeper has ended");
    if (received == sys::Received::kWouldBlock) return;
  }
}

void Keeper::handle(const wire::Frame& frame) {
  if (auto ready = wire::message_in<wire::KeeperReady>(frame)) {
    ready_ = std::move(*ready);
    if (!ready_.failure.empty()) fail(ready_.failure);
  } else if (const auto reaped = wire::message_in<wire::Reaped>(frame)) {
    if (outstanding_.empty() || outstanding_.front() != Order::kReap)
      return fail("the slot's keeper reaped unasked");
    outstanding_.pop_front();
    reaped_ = *reaped;
  } else if (const auto spawned = wire::message_in<wire::Spawned>(frame)) {
    handle_spawned(*spawned);
  } else if (wire::message_in<wire::LeaderEnded>(frame)) {
    leader_ended_ = !reaping();
  } else {
    fail("the slot's keeper sent a frame of the wrong kind");
  }
}

void Keeper::handle_spawned(const wire::Spawned& spawned) {
  if (outstanding_.empty() || outstanding_.front() == Order::kReap)
    return fail("the slot's keeper spawned unasked");
  const bool is_command = outstanding_.front() == Order::kLaunch;
  outstanding_.pop_front();
  if (spawned.pid == 0) {
    if (is_command) {
      launch_failure_ = spawned;
      return;
    }
    return fail("a child could not be forked: " +
                (spawned.failure.empty() ? std::generic_category().message(spawned.error_number)
                                         : spawned.failure));
  }
  const size_t count = fds_.size() - (is_command ? 0 : 1);
  if (fds_.empty() || (count != kFdsAlways && count != kFdsWithPidfd && count != kFdsWithProc))
    return fail("the slot's keeper sent " + std::to_string(fds_.size()) + " descriptors");
  std::vector<sys::UniqueFd> fds = std::exchange(fds_, {});
  if (reaping()) return;  // ordered away already
  Spare spare;
  spare.pid = spawned.pid;
  sys::UniqueFd* const into[] = {&spare.channel, &spare.out,   &spare.err,      &spare.work,
                                 &spare.pidfd,   &spare.tasks, &spare.children, &spare.keeper_children};
  for (size_t i = 0; i < fds.size(); ++i) *into[i + (is_command ? 1 : 0)] = std::move(fds[i]);
  sys::set_nonblocking(spare.out.get());
  sys::set_nonblocking(spare.err.get());
  spare_ = std::move(spare);
}

void Keeper::fail(std::string why) {
  if (!failure_) failure_ = std::move(why);
}

bool Keeper::spare_ready() {
  if (!spare_) return false;
  pollfd channel{spare_->channel.get(), POLLIN, 0};
  return ::poll(&channel, 1, 0) > 0;
}

std::optional<wire::Reaped> Keeper::take_reaped() {
  if (reaping()) return std::nullopt;
  return std::exchange(reaped_, std::nullopt);
}

bool kill_leader_and_see_it_alone(const Spare& spare) {
  if (!spare.pidfd || sys::raw::pidfd_send_signal(spare.pidfd.get(), SIGKILL) != 0) return false;
  if (!spare.keeper_children) return false;
  // A second thread may have children of its own. "task" has a link for each, and two more.
  struct stat tasks{};
  constexpr nlink_t kLinksOfOneThread = 3;
  if (::fstat(spare.tasks.get(), &tasks) != 0 || tasks.st_nlink > kLinksOfOneThread) return false;
  // First the leader's own, then the keeper's: what the leader's death moves from the one to the
  // other between the two looks is seen in the second. The keeper does not reap the leader before it
  // is told to, so the leader stays the first entry there.
  pid_t pids[2] = {};
  const int leaders = read_children(spare.children.get(), pids);
  if (leaders > 0) return false;
  const int keepers = read_children(spare.keeper_children.get(), pids);
  return keepers == 1 && pids[0] == spare.pid;
}

}  // namespace pyplaypen::supervisor
