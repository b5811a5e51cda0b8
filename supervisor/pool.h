// The slots of a Sandbox: the zygote, the keepers that no call uses now, and who waits for a turn.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/jail/cgroup.h"
#include "runtime/sys/unique_fd.h"
#include "runtime/wire/messages.h"
#include "supervisor/keeper.h"
#include "supervisor/stale.h"
#include "supervisor/zygote_process.h"

namespace pyplaypen::supervisor {

struct PoolOptions {
  int max_concurrency = 1;
  int spares = 0;
  std::optional<uint32_t> first_uid;  // slots run as free UIDs from here on; absent: as ourselves
  std::optional<uint32_t> gid;
  std::filesystem::path zygote;
  std::vector<std::string> cgroups;  // each slot has a group beneath all of these; empty: none
};

// One caller's turn. Made by enter(), given back by leave(); readable event = it has come.
class Turn {
 public:
  bool granted() const { return granted_; }
  int event() const { return event_.get(); }

 private:
  friend class Pool;
  bool granted_ = false;
  sys::UniqueFd event_;  // only for one that has to wait
};

// Thread-safe.
class Pool {
 public:
  // Starts a zygote with CPython, and the spares. Throws as ZygoteProcess does.
  Pool(PoolOptions options, wire::Setup setup);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // First come, first served.
  std::shared_ptr<Turn> enter();
  bool has_come(const Turn& turn);
  void leave(const std::shared_ptr<Turn>& turn);

  // A keeper for the caller alone: with a spare ready if there is one, else the one that will be
  // soonest, else a new one. Starts another zygote where the last has died. Throws.
  std::unique_ptr<Keeper> take();
  // Back in the pool; a spare is ordered where one is wanted.
  void give_back(std::unique_ptr<Keeper> keeper);
  // Instead of give_back, for a keeper that failed: returns when what it left behind is dead.
  void bury(std::unique_ptr<Keeper> keeper);

  // Throws LimitError when memory_bytes on top of the warm interpreter is above what may be had here.
  void check_memory(const Limits& limits) const;

  std::string python_version() const { return ready_.python_version; }
  const std::string& temp_directory() const { return temp_directory_; }
  // Keepers and zygotes started so far, for tests and notes.
  uint64_t zygotes_started() const { return zygotes_started_; }

 private:
  void start_zygote();
  void make_base();
  void drop_idle();
  std::unique_ptr<Keeper> open_keeper();
  uint32_t free_slot() const;
  void drop_failed();
  jail::Cgroup* cgroup_of(uint32_t slot);
  void end_keeper(Keeper& keeper);

  mutable std::mutex mutex_;
  PoolOptions options_;
  std::string temp_directory_;
  std::unique_ptr<BaseDirectory> base_;
  wire::Setup setup_;
  std::map<uint32_t, jail::Cgroup> cgroups_;  // by slot; they outlive its keepers
  std::unique_ptr<ZygoteProcess> zygote_;  // with CPython started
  wire::Ready ready_;
  std::vector<std::unique_ptr<Keeper>> idle_;
  std::vector<bool> slots_in_use_;
  int turns_out_ = 0;
  std::list<std::shared_ptr<Turn>> waiting_;
  bool starving_ = false;  // the last call found no spare ready
  uint64_t zygotes_started_ = 0;
};

}  // namespace pyplaypen::supervisor
