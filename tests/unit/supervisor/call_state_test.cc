#include "supervisor/call_state.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace pyplaypen::supervisor {
namespace {

using std::chrono::milliseconds;

constexpr int exited(int code) { return code << 8; }  // man 2 wait

class CallStateTest : public testing::Test {
 protected:
  CallState running() {
    CallState state(Job::kCode, limits_, t0_);
    state.on_slot(t0_ + milliseconds(1));
    state.on_request_sent(t0_ + milliseconds(2));
    return state;
  }
  ErrorInfo end_with(int wait_status, double cpu_seconds = 0) {
    CallState state = running();
    state.on_leader_silent();
    EXPECT_EQ(state.phase(), Phase::kEnding);
    EXPECT_FALSE(state.has_verdict());
    wire::Reaped reaped;
    reaped.wait_status = wait_status;
    reaped.cpu_microseconds = static_cast<uint64_t>(cpu_seconds * 1e6);
    state.on_tree_gone(reaped, t0_ + milliseconds(9));
    EXPECT_EQ(state.phase(), Phase::kDone);
    return state.error().value();
  }

  Limits limits_;
  Clock::time_point t0_ = Clock::time_point(std::chrono::seconds(1000));
};

TEST_F(CallStateTest, AReportIsTheResultOnceTheTreeIsGone) {
  CallState state = running();
  wire::Report report;
  report.value_json = "2";
  state.on_report(report, t0_ + milliseconds(3));
  EXPECT_EQ(state.phase(), Phase::kEnding);
  state.on_tree_gone(std::nullopt, t0_ + milliseconds(4));
  EXPECT_EQ(state.phase(), Phase::kDone);
  EXPECT_FALSE(state.error());
  EXPECT_EQ(state.report()->value_json, "2");
}

TEST_F(CallStateTest, AnErrorReportKeepsItsDetails) {
  CallState state = running();
  wire::Report report;
  report.status = wire::ReportStatus::kRuntime;
  report.message = "ValueError: x";
  report.traceback = "Traceback";
  report.line = 3;
  state.on_report(report, t0_);
  ASSERT_TRUE(state.error());
  EXPECT_EQ(state.error()->type, ErrorType::kRuntime);
  EXPECT_EQ(state.error()->message, "ValueError: x");
  EXPECT_EQ(state.error()->line, 3);
}

TEST_F(CallStateTest, ATimeoutIsNotUndoneByALateReport) {
  CallState state = running();
  state.on_time(state.deadline());
  EXPECT_EQ(state.phase(), Phase::kEnding);
  state.on_report({}, state.deadline());
  state.on_tree_gone(std::nullopt, state.deadline());
  EXPECT_EQ(state.error()->type, ErrorType::kTimeout);
  EXPECT_EQ(state.error()->message, "wall_seconds=30 exceeded");
}

TEST_F(CallStateTest, AReportIsNotUndoneByTheDeadlineWhileTheTreeEnds) {
  CallState state = running();
  state.on_report({}, t0_);
  state.on_time(state.deadline() + milliseconds(1));
  state.on_cancel();
  state.on_tree_gone(std::nullopt, state.deadline());
  EXPECT_FALSE(state.error());
}

TEST_F(CallStateTest, BeforeTheDeadlineNothingHappens) {
  CallState state = running();
  state.on_time(state.deadline() - milliseconds(1));
  EXPECT_EQ(state.phase(), Phase::kRunning);
}

TEST_F(CallStateTest, NoSlotBeforeTheDeadlineIsBusy) {
  limits_.wall_seconds = 0.5;
  CallState state(Job::kCode, limits_, t0_);
  EXPECT_EQ(state.deadline(), t0_ + milliseconds(500));
  state.on_time(state.deadline());
  EXPECT_EQ(state.phase(), Phase::kDone);
  EXPECT_EQ(state.error()->type, ErrorType::kBusy);
  EXPECT_EQ(state.error()->message, "no slot was free within wall_seconds=0.5");
}

TEST_F(CallStateTest, CancelledWhileQueuedHasNothingToEnd) {
  CallState state(Job::kCode, limits_, t0_);
  state.on_cancel();
  EXPECT_EQ(state.phase(), Phase::kDone);
  EXPECT_EQ(state.error()->type, ErrorType::kCancelled);
}

TEST_F(CallStateTest, ASlotButNoChildInTimeIsATimeout) {
  CallState state(Job::kCode, limits_, t0_);
  state.on_slot(t0_);
  state.on_time(state.deadline());
  EXPECT_EQ(state.phase(), Phase::kEnding);
  EXPECT_EQ(state.error()->type, ErrorType::kTimeout);
}

TEST_F(CallStateTest, AnExitWithoutAReportIsProtocol) {
  const ErrorInfo error = end_with(exited(3));
  EXPECT_EQ(error.type, ErrorType::kProtocol);
  EXPECT_EQ(error.exit_code, 3);
}

TEST_F(CallStateTest, ASignalIsACrashThatNamesIt) {
  const ErrorInfo error = end_with(SIGSEGV);
  EXPECT_EQ(error.type, ErrorType::kCrash);
  EXPECT_EQ(error.signal, SIGSEGV);
  EXPECT_NE(error.message.find("SIGSEGV"), std::string::npos);
  EXPECT_NE(end_with(SIGKILL).message.find("SIGKILL"), std::string::npos);
}

TEST_F(CallStateTest, AStackOverflowIsNamedWhereItWasToldOf) {
  CallState state = running();
  state.on_stack_overflow_hint();
  state.on_leader_silent();
  wire::Reaped reaped;
  reaped.wait_status = SIGSEGV;
  state.on_tree_gone(reaped, t0_);
  EXPECT_NE(state.error()->message.find("stack overflow"), std::string::npos);
  EXPECT_EQ(end_with(SIGSEGV).message.find("stack overflow"), std::string::npos);
}

TEST_F(CallStateTest, SigxcpuIsTheCpuLimit) {
  limits_.cpu_seconds = 2;
  EXPECT_EQ(end_with(SIGXCPU).type, ErrorType::kCpuLimit);
  EXPECT_EQ(end_with(SIGXCPU).message, "cpu_seconds=2 exceeded");
}

TEST_F(CallStateTest, AKillAfterTheCpuWasUsedUpIsTheCpuLimit) {
  limits_.cpu_seconds = 2;
  EXPECT_EQ(end_with(SIGKILL, 2.9).type, ErrorType::kCpuLimit);
  EXPECT_EQ(end_with(SIGKILL, 1.5).type, ErrorType::kCrash);
}

TEST_F(CallStateTest, HowACommandEndedIsNoError) {
  CallState state(Job::kCommand, limits_, t0_);
  state.on_slot(t0_);
  state.on_request_sent(t0_);
  state.on_leader_silent();
  wire::Reaped reaped;
  reaped.wait_status = SIGSEGV;
  state.on_tree_gone(reaped, t0_);
  EXPECT_FALSE(state.error());
  EXPECT_EQ(state.reaped()->wait_status, SIGSEGV);
}

TEST_F(CallStateTest, OurOwnFailureIsInternal) {
  CallState state = running();
  state.on_internal("the slot's keeper has ended");
  state.on_tree_gone(std::nullopt, t0_);
  EXPECT_EQ(state.error()->type, ErrorType::kInternal);
}

TEST(SignalName, KnowsRealTimeSignalsByNumber) {
  EXPECT_EQ(signal_name(SIGTERM), "SIGTERM");
  EXPECT_EQ(signal_name(42), "signal 42");
}

}  // namespace
}  // namespace pyplaypen::supervisor
