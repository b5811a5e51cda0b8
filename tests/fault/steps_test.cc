// Zygote, keeper or child is killed at each step of the protocol in turn, or a system call of theirs fails
// there: every call has an answer of the right type, the next one works, and nothing is left.
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>

#include "tests/fault/intercept.h"
#include "tests/integration/processes.h"
#include "tests/integration/sandbox_fixture.h"

namespace pyplaypen {
namespace {

using testing::Intercepted;
using testing::Role;
using testing::Verdict;

#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifdef SYS_poll
constexpr long kPoll = SYS_poll;
#else
constexpr long kPoll = SYS_ppoll;  // what poll is where there is none
#endif

struct Step {
  const char* name;
  Role role;
  long number;
  Verdict verdict;
  int times;  // the first to the n-th of them, a run each; how many there are depends on what comes together
};

void PrintTo(const Step& step, std::ostream* out) { *out << step.name; }

constexpr Verdict kNoFiles{Verdict::Kind::kFail, EMFILE};
constexpr Verdict kNoMemory{Verdict::Kind::kFail, ENOMEM};
constexpr Verdict kNoProcess{Verdict::Kind::kFail, EAGAIN};
constexpr Verdict kNoSpace{Verdict::Kind::kFail, ENOSPC};

// What is sent: by the zygote Ready; by a keeper KeeperReady, Spawned, Reaped;
// by a child SpareReady and Report. What is received: the orders before each.
constexpr Step kSteps[] = {
    {"ZygoteKilledAsItSends", Role::kZygote, SYS_sendmsg, testing::kKill, 1},
    {"ZygoteKilledAsItReceives", Role::kZygote, SYS_recvmsg, testing::kKill, 4},
    {"ZygoteKilledAsItWaits", Role::kZygote, kPoll, testing::kKill, 8},
    {"ZygoteKilledAsItForks", Role::kZygote, SYS_clone, testing::kKill, 2},
    {"KeeperKilledAsItSends", Role::kKeeper, SYS_sendmsg, testing::kKill, 10},
    {"KeeperKilledAsItReceives", Role::kKeeper, SYS_recvmsg, testing::kKill, 10},
    {"KeeperKilledAsItForks", Role::kKeeper, SYS_clone, testing::kKill, 4},
    {"KeeperKilledAsItReaps", Role::kKeeper, SYS_wait4, testing::kKill, 6},
    {"KeeperKilledAsItCleans", Role::kKeeper, SYS_renameat2, testing::kKill, 4},
    {"ChildKilledAsItSends", Role::kChild, SYS_sendmsg, testing::kKill, 6},
    {"ChildKilledAsItReceives", Role::kChild, SYS_recvmsg, testing::kKill, 6},
    {"ChildKilledAsItIsSetUp", Role::kChild, SYS_close_range, testing::kKill, 4},
    {"NoProcessForAKeeper", Role::kZygote, SYS_clone, kNoProcess, 2},
    {"NoDescriptorsForAChild", Role::kKeeper, SYS_socketpair, kNoFiles, 4},
    {"NoPipesForAChild", Role::kKeeper, SYS_pipe2, kNoFiles, 4},
    {"NoProcessForAChild", Role::kKeeper, SYS_clone, kNoProcess, 4},
    {"NoPidfdOfAChild", Role::kKeeper, SYS_pidfd_open, kNoFiles, 4},
    {"NoDirectoryForAChild", Role::kKeeper, SYS_mkdirat, kNoSpace, 6},
    {"NoRoomToMoveAside", Role::kKeeper, SYS_renameat2, kNoSpace, 4},
    {"NoMemoryToPoll", Role::kKeeper, kPoll, kNoMemory, 6},
    {"NoMemoryToReceive", Role::kKeeper, SYS_recvmsg, kNoMemory, 6},
    {"NoMemoryToSend", Role::kKeeper, SYS_sendmsg, kNoMemory, 6},
    {"NoMemoryForTheZygoteToReceive", Role::kZygote, SYS_recvmsg, kNoMemory, 4},
    {"NoMemoryForTheReport", Role::kChild, SYS_sendmsg, kNoMemory, 6},
};

bool is_good_or_tells(const Result& result, const std::string& value) {
  if (result.ok()) return result.return_value == value;
  return (result.error->type == ErrorType::kInternal && !result.error->message.empty()) ||
         (result.error->type == ErrorType::kCrash && result.error->signal == SIGKILL) ||
         result.error->type == ErrorType::kProtocol;  // a report that could not be sent
}

std::string text_of(const Result& result) {
  return result.ok() ? result.return_value
                     : std::string(error_type_name(result.error->type)) + ": " + result.error->message;
}

// All kinds of steps: spares that wait, a child that is waited for, files to be moved aside, a tree to be
// reaped, a crash, a command.
void make_calls(Sandbox& sandbox) {
  for (int i = 0; i < 2; ++i) {
    const Result plain = sandbox.execute("6 * 7");
    EXPECT_TRUE(is_good_or_tells(plain, "42")) << text_of(plain);
    const Result link = sandbox.execute("import os\nos.symlink('/', 'link')\n1");
    EXPECT_FALSE(link.ok()) << "its link is no artifact, and may not be missed";
    const Result daemon = sandbox.execute("import subprocess\nsubprocess.Popen(['setsid', 'sleep', '600'])\n"
                                          "open('.f', 'w').close()\n7");
    EXPECT_TRUE(is_good_or_tells(daemon, "7")) << text_of(daemon);
    const Result crash = sandbox.execute("import os\nos.abort()");
    ASSERT_TRUE(crash.error);
    EXPECT_TRUE(crash.error->type == ErrorType::kCrash || crash.error->type == ErrorType::kInternal) << text_of(crash);
    const ProcessResult command = sandbox.run_process({"sh", "-c", "setsid sleep 600 & echo 8"});
    if (command.status == ProcessResult::Status::kOk) {
      EXPECT_TRUE(command.returncode == 0 || command.returncode == -SIGKILL);
      if (command.returncode == 0) {
        EXPECT_EQ(command.stdout_output.bytes, "8\n");
      }
    } else {
      EXPECT_EQ(command.status, ProcessResult::Status::kInternal);
      EXPECT_NE(command.message, "");
    }
  }
}

std::unique_ptr<Sandbox> start(const SandboxOptions& options) {
  try {
    return std::make_unique<Sandbox>(options);
  } catch (const std::runtime_error& error) {
    EXPECT_STRNE(error.what(), "");
  }
  return std::make_unique<Sandbox>(options);  // there is one fault only
}

void soak_up_a_fault() {
  EXPECT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);  // so that what is left would be ours
  const auto directory = std::filesystem::temp_directory_path() / ("steps-" + std::to_string(::getpid()));
  std::filesystem::create_directory(directory);
  std::filesystem::permissions(directory, std::filesystem::perms(0755));
  ::setenv("TMPDIR", directory.c_str(), 1);
  const size_t fds = sys::open_fds().size();
  {
    SandboxOptions options = quiet_options();
    options.max_concurrency = 1;
    const std::unique_ptr<Sandbox> sandbox = start(options);
    make_calls(*sandbox);
    // The fault may still have been ahead of a spare.
    const Result last = sandbox->execute("6 * 7");
    EXPECT_TRUE(is_good_or_tells(last, "42")) << text_of(last);
    if (!last.ok()) {
      EXPECT_EQ(text_of(sandbox->execute("6 * 7")), "42");
    }
  }
  EXPECT_EQ(sys::open_fds().size(), fds);
  EXPECT_TRUE(comes_true([] {
    while (::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
    }
    return sys::children().empty();
  })) << "a process was left";
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove_all(directory);
}

class Steps : public ::testing::TestWithParam<Step> {};

TEST_P(Steps, OneFaultEach) {
  if (const std::string why = testing::cannot_intercept(); !why.empty()) GTEST_SKIP() << why;
  const Step& step = GetParam();
  std::vector<long> numbers = {step.number};  // and what else libc may use instead
  if (step.number == SYS_clone) numbers.push_back(SYS_clone3);
  for (int at = 1; at <= step.times; ++at) {
    SCOPED_TRACE(at);
    int count = 0;
    testing::intercept(
        numbers,
        [&](const Intercepted& call) {
          return call.role == step.role && ++count == at ? step.verdict : testing::kPass;
        },
        soak_up_a_fault);
    EXPECT_GE(count, 1) << "nobody came there";
    if (count < at || ::testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Steps, ::testing::ValuesIn(kSteps),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace pyplaypen
