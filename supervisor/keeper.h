// A slot's keeper as seen from the supervisor, and the child it holds ready.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pyplaypen/limits.h"
#include "runtime/jail/cgroup.h"
#include "runtime/sys/unique_fd.h"
#include "runtime/wire/codec.h"

namespace pyplaypen::supervisor {

// A child that was forked and has served nothing yet, or is serving.
struct Spare {
  pid_t pid = 0;
  sys::UniqueFd channel;
  sys::UniqueFd out;
  sys::UniqueFd err;
  sys::UniqueFd pidfd;     // where the kernel has them
  sys::UniqueFd tasks;     // /proc/<pid>/task
  sys::UniqueFd children;  // the leader's children file
};

// Passive: sends what it is told, keeps what has arrived. Used by one thread at a time: its call's, or
// under the Sandbox's lock.
class Keeper {
 public:
  Keeper(uint32_t slot, sys::UniqueFd channel) : slot_(slot), channel_(std::move(channel)) {}

  uint32_t slot() const { return slot_; }
  int channel() const { return channel_.get(); }
  bool warm = false;  // forked from a zygote with CPython
  jail::Cgroup* cgroup = nullptr;  // the slot's, where there is one; the pool's

  // Of the slot's cgroup. Costs nothing when they are in force already. Throws sys::Error.
  void limit(const Limits& limits);
  // The kernel has killed one of the slot's processes for memory since this was asked last.
  bool ran_out_of_memory();

  // Each asks the keeper and returns at once.
  void spawn(wire::WarmUp warm_up);
  // Ends a spare that is there first. `fds`: standard input, current directory.
  void launch(const wire::Launch& launch, std::span<const int> fds);
  void reap();
  // As reap(), but asked with the next order, or by flush(): one message less to send and to wake for.
  void reap_soon();
  void flush();

  // Takes in what has arrived, without waiting.
  void pump();

  // The keeper is gone, or says it cannot work: its sentence.
  const std::optional<std::string>& failure() const { return failure_; }

  // It is gone, and not merely unable to work.
  bool has_ended() const { return has_ended_; }
  // Tells it that nobody is here any more and waits for its end. False when it takes too long.
  bool wait_for_end();

  bool spawning() const { return is_outstanding(Order::kSpawn); }
  bool reaping() const { return is_outstanding(Order::kReap); }
  bool has_spare() const { return spare_.has_value(); }
  // The spare says that it is set up (or failed to be), and its keeper lives; looks without waiting.
  bool spare_ready();
  Spare& spare() { return *spare_; }
  // The answer to the last reap().
  std::optional<wire::Reaped> take_reaped();
  // A command that could not be started: no failure of the keeper's.
  std::optional<wire::Spawned> take_launch_failure() { return std::exchange(launch_failure_, std::nullopt); }
  bool leader_ended() const { return leader_ended_; }
  // The workspace of the child that is there; -1 before the first.
  int work() const { return work_.get(); }
  // No process of the call is alive but its leader, which has been killed. One look at three files of
  // the kernel's; false when it cannot be told. The leader is killed here: from then on it cannot fork.
  bool kill_leader_and_see_it_alone() const;
  const wire::KeeperReady& ready() const { return ready_; }

 private:
  enum class Order { kSpawn, kLaunch, kReap };

  void queue(Order what, const std::string& frame);
  bool is_outstanding(Order what) const { return std::ranges::count(outstanding_, what) > 0; }
  void handle(const wire::Frame& frame);
  void handle_spawned(const wire::Spawned& spawned);
  void fail(std::string why);
  void fail_by_end();

  uint32_t slot_;
  sys::UniqueFd channel_;
  wire::FrameReader reader_;
  std::vector<sys::UniqueFd> fds_;
  wire::KeeperReady ready_;
  std::optional<std::string> failure_;
  std::optional<Spare> spare_;
  std::optional<Spare> ended_;  // closed when its end has been ordered
  std::string unsent_;
  sys::UniqueFd work_;
  sys::UniqueFd own_children_;  // the keeper's children file
  std::optional<wire::Reaped> reaped_;
  std::optional<wire::Spawned> launch_failure_;
  bool leader_ended_ = false;
  uint64_t memory_kills_ = 0;  // that we know of
  bool has_ended_ = false;
  std::deque<Order> outstanding_;  // answered in this order
};

}  // namespace pyplaypen::supervisor
