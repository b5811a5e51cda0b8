// Each stage of a child's set-up fails once: the call is told which, and the next one works.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "pyplaypen/landlock.h"
#include "runtime/policy/stage.h"
#include "tests/fault/intercept.h"
#include "tests/integration/sandbox_fixture.h"

namespace pyplaypen {
namespace {

using policy::Stage;
using testing::Intercepted;
using testing::Role;

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif
#ifdef SYS_dup2
constexpr long kDup2 = SYS_dup2;
#else
constexpr long kDup2 = SYS_dup3;  // what dup2 is where there is none
#endif

// None that stands for an older kernel or a container's filter, and so has a fallback.
constexpr int kError = EIO;

// The system call by which a stage is made to fail.
struct Fault {
  Stage stage;
  long number;
  bool (*matches)(const Intercepted&) = [](const Intercepted&) { return true; };
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << policy::stage_name(fault.stage); }

constexpr Fault kFaults[] = {
    {Stage::kSession, SYS_setsid},
    {Stage::kStdio, kDup2, [](const Intercepted& call) { return call.arguments[1] <= 2; }},
    {Stage::kDirectory, SYS_fchdir},
    {Stage::kIdentity, SYS_capset},
    {Stage::kNoNewPrivs, SYS_prctl, [](const Intercepted& call) { return call.arguments[0] == PR_SET_NO_NEW_PRIVS; }},
    {Stage::kLandlock, SYS_landlock_restrict_self},
    {Stage::kDescriptors, SYS_close_range},
    {Stage::kSignals, SYS_rt_sigprocmask, [](const Intercepted& call) { return call.arguments[0] == SIG_SETMASK; }},
    {Stage::kWarmUp, SYS_getrandom},
    {Stage::kLimits, SYS_prlimit64, [](const Intercepted& call) { return call.arguments[2] != 0; }},
    {Stage::kExec, SYS_execve},
};

class Stages : public ::testing::TestWithParam<Fault> {
 protected:
  void SetUp() override {
    if (const std::string why = testing::cannot_intercept(); !why.empty()) GTEST_SKIP() << why;
    // Something to be seeded that needs the kernel for it, and cannot go on without.
    std::filesystem::create_directories(modules_ / "numpy");
    std::ofstream(modules_ / "numpy" / "__init__.py");
    std::ofstream(modules_ / "numpy" / "random.py") << "def seed(words): pass\n";
    if (GetParam().stage == Stage::kLandlock && landlock_abi() == 0) GTEST_SKIP() << "needs Landlock";
  }

  void TearDown() override { std::filesystem::remove_all(modules_); }

  // The first child that comes to the stage fails there, and no other.
  void with_fault(const std::function<void(Sandbox&)>& body, int spares) {
    pid_t first = 0;
    testing::intercept(
        {GetParam().number},
        [&](const Intercepted& call) {
          if (call.role != Role::kChild || !GetParam().matches(call) || (first != 0 && first != call.pid))
            return testing::kPass;
          first = call.pid;
          return testing::fail_with(kError);
        },
        [&] {
          std::filesystem::permissions(modules_, std::filesystem::perms(0755));
          SandboxOptions options = quiet_options();
          options.max_concurrency = 1;
          options.spares = spares;
          options.self_check = SelfCheck::kNo;
          options.extra_environment["PYTHONPATH"] = modules_.string();
          options.preload = {"numpy.random"};
          Sandbox sandbox(options);
          body(sandbox);
        });
    EXPECT_NE(first, 0) << "no child came there";
  }

  static bool tells_the_stage(const std::string& message) {
    const std::string name(policy::stage_name(GetParam().stage));
    return (message.find("stage " + name + ": ") != std::string::npos ||
            message.find("stage '" + name + "': ") != std::string::npos) &&
           message.find("Input/output error") != std::string::npos;
  }
  static std::string answer_of(const Result& result) {
    return result.ok() ? result.return_value
                       : std::string(error_type_name(result.error->type)) + ": " + result.error->message;
  }

  std::filesystem::path modules_ =
      std::filesystem::temp_directory_path() / ("stages-" + std::to_string(::getpid()));
};

TEST_P(Stages, FailWhileTheCallWaits) {
  if (GetParam().stage == Stage::kExec) GTEST_SKIP() << "a stage of commands only";
  with_fault(
      [](Sandbox& sandbox) {
        const std::string answer = answer_of(sandbox.execute("6 * 7"));
        EXPECT_TRUE(answer.starts_with("internal: ") && tells_the_stage(answer)) << answer;
        for (int i = 0; i < 3; ++i) EXPECT_EQ(answer_of(sandbox.execute("6 * 7")), "42");
      },
      0);
}

TEST_P(Stages, FailInASpare) {
  if (GetParam().stage == Stage::kExec) GTEST_SKIP() << "a stage of commands only";
  with_fault(
      [](Sandbox& sandbox) {
        int failures = 0;
        for (int i = 0; i < 5; ++i) {
          const std::string answer = answer_of(sandbox.execute("6 * 7"));
          if (answer == "42") continue;
          EXPECT_TRUE(answer.starts_with("internal: ") && tells_the_stage(answer)) << answer;
          ++failures;
        }
        EXPECT_LE(failures, 1);
        EXPECT_EQ(answer_of(sandbox.execute("6 * 7")), "42");
      },
      2);
}

TEST_P(Stages, FailForACommand) {
  if (GetParam().stage == Stage::kWarmUp) GTEST_SKIP() << "a stage of code only";
  with_fault(
      [](Sandbox& sandbox) {
        const ProcessResult failed = sandbox.run_process({"true"});
        EXPECT_EQ(failed.status, ProcessResult::Status::kInternal);
        EXPECT_EQ(failed.start_error, kError);
        if (GetParam().stage == Stage::kExec) {
          EXPECT_EQ(failed.message, "cannot run 'true': Input/output error");
        } else {
          EXPECT_TRUE(tells_the_stage(failed.message)) << failed.message;
        }
        const ProcessResult next = sandbox.run_process({"echo", "next"});
        EXPECT_EQ(next.stdout_output.bytes, "next\n") << next.message;
      },
      0);
}

INSTANTIATE_TEST_SUITE_P(Each, Stages, ::testing::ValuesIn(kFaults),
                         [](const auto& one) { return std::string(policy::stage_name(one.param.stage)); });

}  // namespace
}  // namespace pyplaypen
