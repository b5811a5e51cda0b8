// Signals taken from a descriptor instead of by handlers.
#pragma once

#include <signal.h>

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "runtime/sys/unique_fd.h"

namespace pyplaypen::sys {

// Blocks every signal for the calling thread, those that libc uses itself (man 7 nptl) included: its
// functions leave them out, and a handler of theirs would run in a child on its parent's memory.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked();
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;
  ~AllSignalsBlocked();

 private:
  uint64_t before_ = 0;
};

// Blocks the given signals for the calling thread and reads them (man 2 signalfd); puts the mask back
// when destroyed. One that is ignored on arrival stays ignored, as nohup asks. A child inherits the
// mask and must set its own.
class SignalFd {
 public:
  explicit SignalFd(std::initializer_list<int> numbers);
  SignalFd(const SignalFd&) = delete;
  SignalFd& operator=(const SignalFd&) = delete;
  ~SignalFd();

  [[nodiscard]] int fd() const { return fd_.get(); }
  // The next one that has arrived, without waiting. Throws Error.
  std::optional<int> take();

 private:
  sigset_t before_{};
  UniqueFd fd_;
};

}  // namespace pyplaypen::sys
