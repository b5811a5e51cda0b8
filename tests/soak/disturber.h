// Kills the processes behind a Sandbox at random, and knows when it did.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>

namespace pyplaypen::soak {

// Counters are read before and after a call: when they differ, the call may have been hit.
struct Disturbance {
  std::atomic<uint64_t> begun{0};
  std::atomic<uint64_t> done{0};  // the victim, and what ends with it, is gone
};

struct Kills {
  uint64_t zygotes = 0;
  uint64_t keepers = 0;
  uint64_t children = 0;
};

// A thread that lives as long as this does. One victim at a time: with zygote and keeper killed together
// nobody would be left to end a call (docs/design.md, "Deaths").
class Disturber {
 public:
  // `parent`: of all zygotes.
  Disturber(pid_t parent, uint64_t seed);
  ~Disturber();
  Disturber(const Disturber&) = delete;
  Disturber& operator=(const Disturber&) = delete;

  const Disturbance& disturbance() const { return disturbance_; }
  // After stop().
  const Kills& kills() const { return kills_; }
  void stop();
  // What did not end after a kill; empty: all did.
  const std::string& failure() const { return failure_; }

 private:
  void run();
  void kill_one();
  pid_t one_of(const std::vector<pid_t>& pids);

  pid_t parent_;
  std::mt19937_64 random_;
  Disturbance disturbance_;
  Kills kills_;
  std::string failure_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace pyplaypen::soak
