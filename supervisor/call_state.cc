#include "supervisor/call_state.h"

#include <signal.h>
#include <sys/wait.h>

#include <cstring>

namespace pyplaypen::supervisor {
namespace {

ErrorType error_type_of(wire::ReportStatus status) {
  switch (status) {
    case wire::ReportStatus::kSyntax: return ErrorType::kSyntax;
    case wire::ReportStatus::kRuntime: return ErrorType::kRuntime;
    case wire::ReportStatus::kSerialization: return ErrorType::kSerialization;
    case wire::ReportStatus::kMemoryLimit: return ErrorType::kMemoryLimit;
    case wire::ReportStatus::kProcessLimit: return ErrorType::kProcessLimit;
    case wire::ReportStatus::kOpenFilesLimit: return ErrorType::kOpenFilesLimit;
    case wire::ReportStatus::kReturnLimit: return ErrorType::kReturnLimit;
    case wire::ReportStatus::kExtension: return ErrorType::kExtension;
    case wire::ReportStatus::kOk:
    case wire::ReportStatus::kInternal: break;
  }
  return ErrorType::kInternal;
}

// The hard limit's SIGKILL comes at whole seconds of the kernel's own count, which may be a little
// behind the usage that wait reports.
constexpr double kCpuTolerance = 0.98;
constexpr double kMicrosecondsInASecond = 1e6;

ErrorInfo describe_death(const wire::Reaped& reaped, const Limits& limits, bool stack_overflow, bool out_of_memory) {
  ErrorInfo error;
  const int status = reaped.wait_status;
  if (!WIFSIGNALED(status)) {
    error.type = ErrorType::kProtocol;
    error.message = "the process ended (exit status " + std::to_string(WEXITSTATUS(status)) +
                    ") without reporting a result";
    error.exit_code = WEXITSTATUS(status);
    return error;
  }
  const int signal = WTERMSIG(status);
  error.signal = signal;
  if (signal == SIGKILL && out_of_memory) {
    error.type = ErrorType::kMemoryLimit;
    error.message = memory_used_up(limits);
    return error;
  }
  const double used = static_cast<double>(reaped.cpu_microseconds) / kMicrosecondsInASecond;
  if (signal == SIGXCPU || (signal == SIGKILL && used >= limits.cpu_seconds * kCpuTolerance)) {
    error.type = ErrorType::kCpuLimit;
    error.message = "cpu_seconds=" + limit_text(limits, "cpu_seconds") + " exceeded";
    return error;
  }
  error.type = ErrorType::kCrash;
  error.message = "the process was ended by " + signal_name(signal);
  if (signal == SIGKILL)
    error.message += "; if nothing of the code sent it, the kernel's out-of-memory killer is likely";
  if (signal == SIGSEGV && stack_overflow) error.message += ": stack overflow, by recursion that is too deep";
  return error;
}

}  // namespace

CallState::CallState(Job job, const Limits& limits, Clock::time_point now)
    : job_(job),
      limits_(limits),
      started_(now),
      deadline_(now + std::chrono::duration_cast<Clock::duration>(
                          std::chrono::duration<double>(limits.wall_seconds))),
      slot_at_(now),
      sent_at_(now),
      verdict_at_(now),
      ended_(now) {}

void CallState::on_slot(Clock::time_point now) {
  slot_at_ = now;
  phase_ = Phase::kStarting;
}

void CallState::on_request_sent(Clock::time_point now) {
  sent_at_ = now;
  phase_ = Phase::kRunning;
}

void CallState::on_set_up_failed(const std::string& why) { fail(ErrorType::kInternal, why); }

void CallState::on_report(const wire::Report& report, Clock::time_point now) {
  verdict_at_ = now;
  if (has_verdict()) return;
  report_ = report;
  if (report.status != wire::ReportStatus::kOk) {
    ErrorInfo error;
    error.type = error_type_of(report.status);
    error.message = report.message;
    error.traceback = report.traceback;
    error.line = report.line;
    error.exit_code = report.exit_code;
    error.value_type = report.value_type;
    error.value_repr = report.value_repr;
    error_ = std::move(error);
  }
  settle();
}

void CallState::on_bad_frame(const std::string& why) { fail(ErrorType::kProtocol, why); }

void CallState::on_leader_silent() {
  if (phase_ == Phase::kRunning) phase_ = Phase::kEnding;  // verdict: on_tree_gone
}

void CallState::on_cancel() { fail(ErrorType::kCancelled, "cancelled by the caller"); }

void CallState::on_time(Clock::time_point now) {
  if (now < deadline_ || has_verdict()) return;
  if (phase_ == Phase::kQueued) {
    fail(ErrorType::kBusy, "no slot was free within wall_seconds=" + limit_text(limits_, "wall_seconds"));
  } else if (phase_ != Phase::kDone) {
    fail(ErrorType::kTimeout, "wall_seconds=" + limit_text(limits_, "wall_seconds") + " exceeded");
  }
}

void CallState::on_internal(const std::string& why) { fail(ErrorType::kInternal, why); }

void CallState::on_tree_gone(const std::optional<wire::Reaped>& reaped, Clock::time_point now) {
  reaped_ = reaped;
  if (!has_verdict() && !(job_ == Job::kCommand && reaped)) {
    error_ = reaped ? describe_death(*reaped, limits_, stack_overflow_, out_of_memory_)
                    : make_error(ErrorType::kInternal,
                                 "the process ended in a way that could not be learnt");
    verdict_at_ = now;
  }
  ended_ = now;
  phase_ = Phase::kDone;
}

void CallState::fail(ErrorType type, std::string message) {
  if (has_verdict() || phase_ == Phase::kDone) return;
  error_ = make_error(type, std::move(message));
  settle();
}

void CallState::settle() {
  // A call that never had a child has nothing to end.
  phase_ = phase_ == Phase::kQueued ? Phase::kDone : Phase::kEnding;
}

std::string memory_used_up(const Limits& limits) {
  return "memory_bytes=" + limit_text(limits, "memory_bytes") + " is used up by the call's processes together";
}

ErrorInfo make_error(ErrorType type, std::string message) {
  ErrorInfo error;
  error.type = type;
  error.message = std::move(message);
  return error;
}

std::string signal_name(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

}  // namespace pyplaypen::supervisor
