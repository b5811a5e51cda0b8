#include "supervisor/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "pyplaypen/privilege.h"
#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"
#include "runtime/sys/raw.h"
#include "supervisor/way_out.h"

namespace pyplaypen::supervisor {
namespace {

// It ends its call and removes its directories first; only a process in an uninterruptible sleep needs
// more than a few ms for that.
constexpr int kFarewellMilliseconds = 10'000;

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

void Keeper::queue(Order what, const std::string& frame) {
  outstanding_.push_back(what);
  unsent_ += frame;
}

void Keeper::flush() {
  if (unsent_.empty()) return;
  if (!sys::send_all(channel_.get(), std::exchange(unsent_, {}))) fail_by_end();
  ended_.reset();  // now: the keeper works while we close its descriptors
}

void Keeper::spawn(wire::WarmUp warm_up) {
  wire::Spawn message;
  message.warm_up = warm_up;
  queue(Order::kSpawn, wire::framed(message));
  flush();
}

void Keeper::launch(const wire::Launch& launch, std::span<const int> fds) {
  if (has_spare() || spawning()) reap();
  flush();
  outstanding_.push_back(Order::kLaunch);
  if (!sys::send_all(channel_.get(), wire::framed(launch), fds)) fail_by_end();
}

void Keeper::reap_soon() {
  reaped_.reset();  // of a call before, for which nobody waited
  leader_ended_ = false;
  queue(Order::kReap, wire::framed(wire::Reap{}));
  ended_ = std::exchange(spare_, std::nullopt);
}

void Keeper::reap() {
  reap_soon();
  flush();
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
    if (received == sys::Received::kFdsLost)
      return fail(with_way_out("the descriptors of a child could not be taken", EMFILE));
    while (const auto frame = reader_.next()) handle(*frame);
    if (!reader_.error().empty()) return fail(reader_.error());
    if (received == sys::Received::kEnd) return fail_by_end();
    if (received == sys::Received::kWouldBlock) return;
  }
}

void Keeper::handle(const wire::Frame& frame) {
  if (auto ready = wire::message_in<wire::KeeperReady>(frame)) {
    ready_ = std::move(*ready);
    if (!ready_.failure.empty()) fail(with_way_out_of_tmpdir(ready_.failure, ready_.error_number));
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
    return fail(with_way_out_of_tmpdir("no child could be made: " + spawned.failure, spawned.error_number));
  }
  Spare spare;
  spare.pid = spawned.pid;
  const std::pair<bool, sys::UniqueFd*> attached[] = {
      {!is_command, &spare.channel},     {true, &spare.out},
      {true, &spare.err},                {spawned.with_pidfd, &spare.pidfd},
      {spawned.with_tasks, &spare.tasks}, {spawned.with_tasks, &spare.children},
      {spawned.with_children, &own_children_}, {spawned.with_workspace, &work_}};
  const auto expected = std::ranges::count_if(attached, [](const auto& one) { return one.first; });
  std::vector<sys::UniqueFd> fds = std::exchange(fds_, {});
  if (std::ssize(fds) != expected)
    return fail("the slot's keeper sent " + std::to_string(fds.size()) + " descriptors, not " +
                std::to_string(expected));
  auto next = fds.begin();
  for (const auto& [is_there, place] : attached)
    if (is_there) *place = std::move(*next++);
  if (!work_) return fail("the slot's keeper sent no workspace");
  if (!reaping()) spare_ = std::move(spare);  // or it was ordered away already
}

void Keeper::fail(std::string why) {
  if (!failure_) failure_ = std::move(why);
}

void Keeper::fail_by_end() {
  has_ended_ = true;
  fail("the slot's keeper has ended");
}

bool Keeper::wait_for_end() {
  ::shutdown(channel_.get(), SHUT_WR);
  pollfd ended{channel_.get(), POLLIN, 0};
  for (std::string ignored; sys::retry_eintr([&] { return ::poll(&ended, 1, kFarewellMilliseconds); }) > 0;
       ignored.clear())
    if (sys::receive(channel_.get(), ignored, nullptr, false) == sys::Received::kEnd) return true;
  return false;
}

bool Keeper::spare_ready() {
  if (!spare_) return false;
  pollfd fds[] = {{spare_->channel.get(), POLLIN, 0}, {channel_.get(), POLLIN, 0}};
  if (::poll(fds, 2, 0) <= 0) return false;
  if (fds[1].revents != 0) pump();  // its end: it has nothing else to say now
  return fds[0].revents != 0 && !failure_;
}

std::optional<wire::Reaped> Keeper::take_reaped() {
  if (reaping()) return std::nullopt;
  return std::exchange(reaped_, std::nullopt);
}

bool Keeper::kill_leader_and_see_it_alone() const {
  const Spare& spare = *spare_;
  if (!spare.pidfd || sys::raw::pidfd_send_signal(spare.pidfd.get(), SIGKILL) != 0) return false;
  if (!spare.tasks || !own_children_) return false;
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
  const int keepers = read_children(own_children_.get(), pids);
  return keepers == 1 && pids[0] == spare.pid;
}

}  // namespace pyplaypen::supervisor
