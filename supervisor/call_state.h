// The life of one call as a state machine: events in, what to do out, time passed in. No I/O.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "pyplaypen/limits.h"
#include "pyplaypen/result.h"
#include "runtime/wire/messages.h"

namespace pyplaypen::supervisor {

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC

enum class Phase {
  kQueued,    // waits for a slot
  kStarting,  // has a slot, waits for a child
  kRunning,   // the child has the request
  kEnding,    // the verdict stands; waits until nothing of the call is alive
  kDone,
};

enum class Job { kCode, kCommand };

// The first verdict stays: a timeout is not undone by a report that comes while the tree is killed.
class CallState {
 public:
  CallState(Job job, const Limits& limits, Clock::time_point now);

  Phase phase() const { return phase_; }
  Clock::time_point deadline() const { return deadline_; }

  void on_slot(Clock::time_point now);
  void on_request_sent(Clock::time_point now);
  void on_set_up_failed(const std::string& why);
  void on_report(const wire::Report& report, Clock::time_point now);
  // The report's frame, or what came in its place, is not one.
  void on_bad_frame(const std::string& why);
  // The leader ended without a report: what it died of tells the verdict.
  void on_leader_silent();
  // Its last word was that its stack is used up. Hostile, as a report is: it only chooses the words.
  void on_stack_overflow_hint() { stack_overflow_ = true; }
  // The kernel killed a process of the call because the call's memory, as a whole, is used up.
  void on_out_of_memory() { out_of_memory_ = true; }
  bool out_of_memory() const { return out_of_memory_; }
  void on_cancel();
  // Past the deadline, the call ends.
  void on_time(Clock::time_point now);
  // Our own machinery failed under the call.
  void on_internal(const std::string& why);
  // Nothing of the call is alive. How a command ended is its result, and no error. `reaped` tells how the leader ended, where that is known.
  void on_tree_gone(const std::optional<wire::Reaped>& reaped, Clock::time_point now);

  bool has_verdict() const { return error_.has_value() || report_.has_value(); }
  const std::optional<ErrorInfo>& error() const { return error_; }
  const std::optional<wire::Report>& report() const { return report_; }
  const std::optional<wire::Reaped>& reaped() const { return reaped_; }

  Clock::time_point started() const { return started_; }
  Clock::time_point slot_at() const { return slot_at_; }
  Clock::time_point sent_at() const { return sent_at_; }
  Clock::time_point verdict_at() const { return verdict_at_; }
  Clock::time_point ended() const { return ended_; }

 private:
  void fail(ErrorType type, std::string message);
  void settle();

  Job job_;
  Limits limits_;
  Phase phase_ = Phase::kQueued;
  Clock::time_point started_;
  Clock::time_point deadline_;
  Clock::time_point slot_at_;
  Clock::time_point sent_at_;
  Clock::time_point verdict_at_;
  Clock::time_point ended_;
  bool stack_overflow_ = false;
  bool out_of_memory_ = false;
  std::optional<ErrorInfo> error_;
  std::optional<wire::Report> report_;
  std::optional<wire::Reaped> reaped_;
};

ErrorInfo make_error(ErrorType type, std::string message);

// The sentence for a call of which the kernel killed a process for memory.
std::string memory_used_up(const Limits& limits);

// "SIGSEGV", or "signal 42".
std::string signal_name(int signal);

}  // namespace pyplaypen::supervisor
