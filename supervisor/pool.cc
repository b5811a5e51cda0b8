#include "supervisor/pool.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "runtime/sys/error.h"
#include "runtime/sys/invariant.h"
#include "runtime/sys/raw.h"
#include "supervisor/uid_claim.h"

namespace pyplaypen::supervisor {
namespace {

// What killed supervisors left may be a million files: the next start goes on with them.
constexpr std::chrono::milliseconds kSweepTime{100};

// Less is better: how soon will this keeper have a child to serve a call?
int distance(Keeper& keeper) {
  if (keeper.spare_ready()) return 0;
  if (keeper.has_spare()) return 1;
  if (keeper.spawning()) return keeper.reaping() ? 3 : 2;
  return keeper.reaping() ? 5 : 4;
}

}  // namespace

Pool::Pool(PoolOptions options, wire::Setup setup)
    : options_(std::move(options)),
      temp_directory_(supervisor::temp_directory()),
      setup_(std::move(setup)) {
  const auto sweep_end = std::chrono::steady_clock::now() + kSweepTime;
  sweep(temp_directory_, [&] { return std::chrono::steady_clock::now() > sweep_end; });
  for (const std::string& parent : options_.cgroups) jail::remove_stale_cgroups(parent);
  make_base();
  start_zygote();
  // One more than the slots of a single caller, so that calls back to back take turns on two keepers:
  // one serves while the other ends its last call and forks.
  if (options_.spares > 0) options_.spares = std::max(options_.spares, 2);
  for (int i = 0; i < options_.spares; ++i) {
    idle_.push_back(open_keeper());
    idle_.back()->spawn(wire::WarmUp::kYes);
  }
}

// Nothing of ours is alive after this.
Pool::~Pool() {
  if (!zygote_ || !zygote_->alive()) drop_idle();
  idle_.clear();
  zygote_.reset();  // waits for its end, which is that of its keepers
}

void Pool::drop_idle() {
  for (const auto& keeper : idle_) end_keeper(*keeper);
  idle_.clear();
}

void Pool::make_base() {
  base_ = std::make_unique<BaseDirectory>(temp_directory_);
  setup_.base_directory = base_->path();
}

void Pool::start_zygote() {
  drop_idle();
  zygote_.reset();
  if (!base_->is_there()) make_base();
  setup_.host_pid = ::getpid();
  auto zygote = std::make_unique<ZygoteProcess>(options_.zygote, setup_, base_->fd());
  wire::StartPython as;
  as.uid = options_.first_uid;
  as.gid = options_.gid;
  ready_ = zygote->start_python(as);
  zygote_ = std::move(zygote);
  ++zygotes_started_;
}

// Its slot is free only then: the next keeper there takes over its directories and its user.
void Pool::end_keeper(Keeper& keeper) {
  // Those of a zygote that has died have seen it, and end by themselves.
  if (zygote_ && zygote_->alive()) (void)zygote_->close_keeper(keeper.slot());
  const bool ended = keeper.wait_for_end();
  // And what nobody knows any more, when both were killed.
  if (keeper.cgroup != nullptr) keeper.cgroup->end_all();
  if (ended) slots_in_use_[keeper.slot()] = false;
}

uint32_t Pool::free_slot() const {
  return static_cast<uint32_t>(std::find(slots_in_use_.begin(), slots_in_use_.end(), false) -
                               slots_in_use_.begin());
}

std::unique_ptr<Keeper> Pool::open_keeper() {
  wire::OpenKeeper slot;
  slot.slot = free_slot();
  UidClaim claim;
  if (options_.first_uid) {
    claim = claim_uid(*options_.first_uid);
    slot.uid = claim.uid;
    slot.gid = options_.gid;
  }
  jail::Cgroup* const cgroup = cgroup_of(slot.slot);
  std::vector<int> entrances;
  if (cgroup != nullptr) entrances = cgroup->entrances();
  slot.cgroup_entrances = static_cast<uint32_t>(entrances.size());
  auto keeper = std::make_unique<Keeper>(slot.slot, zygote_->open_keeper(slot, std::move(claim.hold), entrances));
  keeper->cgroup = cgroup;
  if (slot.slot == slots_in_use_.size()) slots_in_use_.push_back(false);
  slots_in_use_[slot.slot] = true;
  return keeper;
}

jail::Cgroup* Pool::cgroup_of(uint32_t slot) {
  if (options_.cgroups.empty()) return nullptr;
  const auto at = cgroups_.find(slot);
  if (at != cgroups_.end()) return &at->second;
  const std::string name = std::filesystem::path(base_->path()).filename().string() + "-" + std::to_string(slot);
  return &cgroups_.emplace(slot, jail::Cgroup::make(options_.cgroups, name)).first->second;
}

void Pool::drop_failed() {
  std::erase_if(idle_, [&](const std::unique_ptr<Keeper>& keeper) {
    keeper->pump();
    if (!keeper->failure()) return false;
    end_keeper(*keeper);
    return true;
  });
}

std::shared_ptr<Turn> Pool::enter() {
  const std::scoped_lock lock(mutex_);
  auto turn = std::make_shared<Turn>();
  if (turns_out_ < options_.max_concurrency) {
    ++turns_out_;
    turn->granted_ = true;
  } else {
    turn->event_.reset(sys::check(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"));
    waiting_.push_back(turn);
  }
  return turn;
}

bool Pool::has_come(const Turn& turn) {
  const std::scoped_lock lock(mutex_);
  return turn.granted_;
}

void Pool::leave(const std::shared_ptr<Turn>& turn) {
  const std::scoped_lock lock(mutex_);
  if (!turn->granted_) {
    waiting_.remove(turn);
    return;
  }
  turn->granted_ = false;
  if (waiting_.empty()) {
    --turns_out_;
    return;
  }
  const std::shared_ptr<Turn> next = std::move(waiting_.front());
  waiting_.pop_front();
  next->granted_ = true;
  const uint64_t one = 1;
  (void)!::write(next->event_.get(), &one, sizeof one);  // an eventfd takes 2^64-2 of these
}

void Pool::check_memory(const Limits& limits) const {
  rlimit inherited{};
  if (::getrlimit(RLIMIT_AS, &inherited) != 0 || inherited.rlim_max == RLIM_INFINITY) return;
  const std::scoped_lock lock(mutex_);
  const uint64_t room = inherited.rlim_max - std::min<uint64_t>(inherited.rlim_max, ready_.mapped_bytes);
  if (limits.memory_bytes > room)
    throw LimitError("limit memory_bytes=" + std::to_string(limits.memory_bytes) +
                     ": above the hard limit that this process inherited, less what the interpreter takes; the "
                     "range here is up to " + std::to_string(room));
}

std::unique_ptr<Keeper> Pool::take() {
  const std::scoped_lock lock(mutex_);
  // Before anything else: its keepers may still look ready.
  if (!zygote_ || !zygote_->alive()) start_zygote();
  // The newest first: its pages are warm still, and the others need not even be looked at.
  for (auto at = idle_.end(); at != idle_.begin();) {
    --at;
    if (!(*at)->has_spare()) (*at)->pump();
    if (!(*at)->spare_ready()) continue;
    starving_ = false;
    std::unique_ptr<Keeper> keeper = std::move(*at);
    idle_.erase(at);
    return keeper;
  }
  drop_failed();
  if (!base_->is_there()) {  // somebody tidied up
    drop_idle();
    make_base();
    zygote_->set_up(setup_, base_->fd());
  }
  const auto best = std::min_element(idle_.begin(), idle_.end(), [](const auto& a, const auto& b) {
    return distance(*a) < distance(*b);
  });
  starving_ = true;
  if (best != idle_.end()) {
    std::unique_ptr<Keeper> keeper = std::move(*best);
    idle_.erase(best);
    return keeper;
  }
  return open_keeper();
}

void Pool::give_back(std::unique_ptr<Keeper> keeper) {
  std::unique_lock lock(mutex_);
  if (keeper->failure()) return end_keeper(*keeper);
  std::optional<wire::WarmUp> next;
  if (!keeper->has_spare() && !keeper->spawning()) {
    const auto ready = std::count_if(idle_.begin(), idle_.end(), [](const auto& other) {
      return other->has_spare() || other->spawning();
    });
    // A warm-up pays when there is time for it before the next call, and costs when there is not.
    if (!waiting_.empty() || ready < options_.spares)
      next = !waiting_.empty() || starving_ ? wire::WarmUp::kNo : wire::WarmUp::kYes;
  }
  lock.unlock();  // nobody has to wait for what is sent, and closed, here
  next ? keeper->spawn(*next) : keeper->flush();
  lock.lock();
  idle_.push_back(std::move(keeper));
}

void Pool::bury(std::unique_ptr<Keeper> keeper) {
  // Should the zygote be dead as well, this is the only one that can still be reached.
  if (keeper->has_spare() && keeper->spare().pidfd) {
    (void)sys::raw::pidfd_send_signal(keeper->spare().pidfd.get(), SIGKILL);  // gone is as good
    pollfd ended{keeper->spare().pidfd.get(), POLLIN, 0};
    (void)sys::retry_eintr([&] { return ::poll(&ended, 1, -1); });
  }
  const std::scoped_lock lock(mutex_);
  end_keeper(*keeper);
}

}  // namespace pyplaypen::supervisor
