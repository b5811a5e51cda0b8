#include "tests/soak/disturber.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "runtime/sys/proc.h"
#include "tests/integration/processes.h"

namespace pyplaypen::soak {
namespace {

// Between two kills; a zygote's restart takes some 50 ms, and calls must get their turn.
constexpr int kLeastPause = 20;   // ms
constexpr int kMostPause = 300;   // ms
constexpr int kZygoteShare = 8;   // percent of all kills
constexpr int kKeeperShare = 40;  // the same

bool is_alive(pid_t pid) { return !is_dead(pid); }

}  // namespace

Disturber::Disturber(pid_t parent, uint64_t seed)
    : parent_(parent), random_(seed), thread_([this] { run(); }) {}

Disturber::~Disturber() { stop(); }

void Disturber::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void Disturber::run() {
  while (!stopping_) {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(std::uniform_int_distribution<int>(kLeastPause, kMostPause)(random_)));
    kill_one();
  }
}

pid_t Disturber::one_of(const std::vector<pid_t>& pids) {
  return pids.empty() ? 0 : pids[std::uniform_int_distribution<size_t>(0, pids.size() - 1)(random_)];
}

void Disturber::kill_one() {
  std::vector<pid_t> zygotes = sys::children_of(parent_);
  std::erase(zygotes, ::getpid());
  std::erase_if(zygotes, is_dead);
  const pid_t zygote = one_of(zygotes);
  if (zygote == 0) return;
  const std::vector<pid_t> keepers = sys::children_of(zygote);
  const pid_t keeper = one_of(keepers);
  const int share = std::uniform_int_distribution<int>(0, 99)(random_);
  std::vector<pid_t> gone;  // what has to be gone then
  if (share < kZygoteShare) {
    gone = keepers;
    gone.push_back(zygote);
  } else if (keeper == 0) {
    return;
  } else {
    gone = sys::children_of(keeper);
    if (share < kKeeperShare) {
      gone.push_back(keeper);
    } else if (const pid_t child = one_of(gone); child != 0) {
      gone = {child};
    } else {
      return;
    }
  }
  ++disturbance_.begun;
  if (::kill(gone.back(), SIGKILL) == 0)
    ++(gone.back() == zygote ? kills_.zygotes : gone.back() == keeper ? kills_.keepers : kills_.children);
  if (!comes_true([&] { return std::ranges::none_of(gone, is_alive); })) {
    failure_ = "alive 20 s after a kill:";
    for (const pid_t pid : gone)
      if (is_alive(pid)) failure_ += " " + std::to_string(pid);
    stopping_ = true;
  }
  // A keeper is not reaped yet, and so what it left not ended, while it is a zombie of a live zygote.
  if (gone.back() == keeper)
    (void)comes_true([&] { return is_dead(zygote) || status_field(keeper, "State").empty(); });
  ++disturbance_.done;
}

}  // namespace pyplaypen::soak
