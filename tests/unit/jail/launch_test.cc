#include "runtime/jail/launch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "runtime/jail/landlock.h"
#include "runtime/sys/channel.h"
#include "tests/unit/ordinary_user.h"
#include "tests/unit/own_process.h"
#include "tests/unit/read_more.h"
#include "tests/unit/temp_tree.h"

namespace pyplaypen::jail {
namespace {

using policy::Stage;
using testing::AsWho;
using testing::TempTree;
using testing::Who;

const std::vector<std::string> kEnvironment = {"PATH=/usr/bin:/bin", "NAME=value"};

struct Ended {
  SetupReport failure;
  int status = -1;
  std::string out;
};

// Runs `argv` with its stdout in a pipe.
Ended run_argv(std::vector<std::string> argv, const std::function<void(Plan&)>& change = {},
          std::vector<std::string> environment = kEnvironment) {
  const Program program(std::move(argv), std::move(environment));
  auto [source, sink] = sys::pipe_pair();
  Plan plan;
  plan.program = &program;
  plan.stdio[1] = sink.get();
  if (change) change(plan);
  Launch launched = launch(plan);
  sink.reset();
  Ended ended;
  ended.failure = launched.failure;
  testing::read_rest(source.get(), ended.out);
  if (launched.child) ended.status = launched.child.wait().status;
  return ended;
}

std::string shell(const std::string& script, const std::function<void(Plan&)>& change = {}) {
  const Ended ended = run_argv({"sh", "-c", script}, change);
  EXPECT_EQ(ended.failure.error, 0);
  EXPECT_EQ(ended.status, 0);
  return ended.out;
}

TEST(Steps, StandInTheOrderOfTheirStages) {
  EXPECT_TRUE(std::ranges::is_sorted(steps(), {}, &Step::stage));
  EXPECT_EQ(steps().back().stage, Stage::kExec);
}

TEST(Steps, EachCanFailAndIsThenNamed) {
  for (const Step& step : steps()) {
    const Ended ended = run_argv({"true"}, [&](Plan& plan) { plan.fail_at = step.stage; });
    EXPECT_EQ(ended.failure.error, EIO);
    EXPECT_EQ(ended.failure.stage, step.stage) << policy::stage_name(step.stage);
    EXPECT_EQ(ended.status, -1) << "no child is left";
  }
}

TEST(Steps, ARealFailureIsNamedToo) {
  const Ended ended = run_argv({"true"}, [](Plan& plan) { plan.directory = 12345; });
  EXPECT_EQ(ended.failure.stage, Stage::kDirectory);
  EXPECT_EQ(ended.failure.error, EBADF);
}

class LaunchTest : public AsWho {};
INSTANTIATE_TEST_SUITE_P(, LaunchTest, ::testing::Values(Who::kSelf, Who::kOrdinary), testing::who_name);

TEST_P(LaunchTest, ArgumentsAndEnvironmentArrive) {
  run([] {
    EXPECT_EQ(run_argv({"sh", "-c", "echo $0 $1 $NAME", "zero", "one two"}).out, "zero one two value\n");
  });
}

TEST_P(LaunchTest, TheChildLeadsASession) {
  run([] { EXPECT_EQ(shell("set -- $(cat /proc/self/stat); [ $5 = $$ ] && [ $6 = $$ ] && echo yes"), "yes\n"); });
}

TEST_P(LaunchTest, NothingButStdioIsOpen) {
  run([] {
    const sys::UniqueFd leaked(::open("/dev/null", O_RDONLY));
    const sys::UniqueFd high(::fcntl(leaked.get(), F_DUPFD, 200));
    // With a command after it, so that ls is a child of the shell that it looks at.
    EXPECT_EQ(shell("ls /proc/$$/fd; true"), "0\n1\n2\n");
  });
}

TEST_P(LaunchTest, StdioInItsPlaceIsKept) {
  run([] {
    testing::in_own_process([] {
      const Program program({"sh", "-c", "[ -e /proc/$$/fd/0 ] || exit 9"}, kEnvironment);
      const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      ASSERT_GE(::dup3(null, 0, O_CLOEXEC), 0);
      Plan plan;
      plan.program = &program;
      plan.stdio[0] = 0;
      Launch launched = launch(plan);
      ASSERT_TRUE(launched.child);
      EXPECT_EQ(launched.child.wait().status, 0);
    });
  });
}

TEST_P(LaunchTest, SignalsAreAsNewProcessesHaveThem) {
  run([] {
    testing::in_own_process([] {
      for (const int number : {SIGPIPE, SIGINT, SIGHUP, SIGRTMIN + 3}) ::signal(number, SIG_IGN);
      sigset_t all;
      sigfillset(&all);
      ::sigprocmask(SIG_BLOCK, &all, nullptr);
      // SIGXFSZ alone is ignored, so that a write beyond file_bytes is an EFBIG.
      EXPECT_EQ(shell("grep -E 'SigIgn|SigBlk' /proc/self/status"),
                "SigBlk:\t0000000000000000\nSigIgn:\t0000000001000000\n");
    });
  });
}

TEST_P(LaunchTest, TheDirectoryIsChanged) {
  TempTree tree;
  ASSERT_EQ(::chmod(tree.path().c_str(), 0755), 0);
  run([&] { EXPECT_EQ(shell("pwd", [&](Plan& plan) { plan.directory = tree.fd(); }), tree.path() + "\n"); });
}

TEST_P(LaunchTest, NoNewPrivsAndLimitsHold) {
  run([] {
    const std::string out = shell("grep NoNewPrivs /proc/self/status; ulimit -n; ulimit -c",
                                  [](Plan& plan) { plan.limits.open_files = 77; });
    EXPECT_EQ(out, "NoNewPrivs:\t1\n77\n0\n");
  });
}

TEST_P(LaunchTest, DiesWithTheThreadThatLaunchedIt) {
  run([] {
    testing::in_own_process([] {
      auto [source, sink] = sys::pipe_pair();
      const pid_t launcher = ::fork();
      if (launcher == 0) {
        const Program program({"sleep", "1000"}, kEnvironment);
        Plan plan;
        plan.program = &program;
        plan.stdio[1] = sink.get();
        Launch launched = launch(plan);
        ::_exit(launched.child ? 0 : 1);
      }
      sink.reset();
      // The end of the pipe: the only process that held it is gone.
      std::string nothing;
      EXPECT_EQ(testing::read_more(source.get(), nothing), sys::Received::kEnd);
      ::waitpid(launcher, nullptr, 0);
    });
  });
}

TEST(Launch, RootGivesUpToTheIdentity) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const auto as_user = [](Plan& plan) { plan.identity = Identity{54322, 54323}; };
  EXPECT_EQ(shell("id -u; id -g; id -G; grep CapEff /proc/self/status", as_user),
            "54322\n54323\n54323\nCapEff:\t0000000000000000\n");
}

TEST(Launch, ADirectoryOnlyRootMayEnterCanBeTheCurrentOne) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  TempTree tree;
  ASSERT_EQ(::chmod(tree.path().c_str(), 0700), 0);
  const Ended ended = run_argv({"true"}, [&](Plan& plan) {
    plan.directory = tree.fd();
    plan.identity = Identity{54322, 54322};
  });
  EXPECT_EQ(ended.failure.error, 0);
  EXPECT_EQ(ended.status, 0);
}

TEST_P(LaunchTest, ARulesetIsInForce) {
  if (landlock_abi() < 1) GTEST_SKIP() << "needs Landlock";
  TempTree tree;
  ASSERT_EQ(::chmod(tree.path().c_str(), 0777), 0);
  run([&] {
    LandlockRuleset ruleset;
    ruleset.write_paths.emplace();
    const sys::UniqueFd fd = build_ruleset(ruleset, 1);
    EXPECT_EQ(shell("(echo > " + tree.at("file") + ") 2>&- || echo denied",
                    [&](Plan& plan) { plan.ruleset = fd.get(); }),
              "denied\n");
  });
}

int exec_error(std::vector<std::string> argv, std::vector<std::string> environment = kEnvironment) {
  const Ended ended = run_argv(std::move(argv), {}, std::move(environment));
  EXPECT_EQ(ended.failure.error == 0 ? Stage::kExec : ended.failure.stage, Stage::kExec);
  return ended.failure.error;
}

TEST(ProgramTest, WhatCannotBeRunIsTold) {
  TempTree tree;
  tree.file("plain", "text", 0644);
  EXPECT_EQ(exec_error({"/no/such/program"}), ENOENT);
  EXPECT_EQ(exec_error({"no-such-program"}), ENOENT);
  EXPECT_EQ(exec_error({tree.at("plain")}), EACCES);
  EXPECT_EQ(exec_error({tree.path()}), EACCES) << "a directory";
  EXPECT_EQ(exec_error({"plain"}, {"PATH=" + tree.path()}), EACCES);
  EXPECT_EQ(exec_error({""}), ENOENT);
}

TEST(ProgramTest, TheSearchGoesOnAfterWhatMayNotBeRun) {
  TempTree tree;
  tree.directory("first");
  tree.directory("second");
  tree.file("first/tool", "#!/bin/sh\necho first", 0644);
  tree.file("second/tool", "#!/bin/sh\necho second", 0755);
  const std::string path = "PATH=/no/such:" + tree.at("first/tool") + ":" + tree.at("first") + ":" + tree.at("second");
  EXPECT_EQ(run_argv({"tool"}, {}, {path}).out, "second\n");
}

TEST(ProgramTest, APathEntryThatMayNotBeEnteredHoldsNoProgram) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  TempTree tree;
  tree.directory("barred", 0700);
  ASSERT_EQ(::chmod(tree.path().c_str(), 0755), 0);
  testing::run_as(testing::kOrdinaryUser, [&] {
    EXPECT_EQ(exec_error({"no-such-program"}, {"PATH=" + tree.at("barred") + ":/bin"}), ENOENT);
    EXPECT_EQ(exec_error({tree.at("barred/tool")}), EACCES);
  });
}

TEST(ProgramTest, AScriptWithoutAnInterpreterLineIsGivenToTheShell) {
  TempTree tree;
  tree.file("script", "echo $0 $1", 0755);
  EXPECT_EQ(run_argv({tree.at("script"), "argument"}).out, tree.at("script") + " argument\n");
}

TEST(ProgramTest, AnEmptyPathEntryIsTheCurrentDirectory) {
  TempTree tree;
  tree.file("tool", "#!/bin/sh\necho here", 0755);
  ASSERT_EQ(::chmod(tree.path().c_str(), 0755), 0);
  const auto there = [&](Plan& plan) { plan.directory = tree.fd(); };
  EXPECT_EQ(run_argv({"tool"}, there, {"PATH=/no/such:"}).out, "here\n");
}

TEST(ProgramTest, RefusesWhatNoProgramCanBeGiven) {
  EXPECT_THROW(Program({}, {}), std::invalid_argument);
  EXPECT_THROW(Program({"true", std::string("a\0b", 3)}, {}), std::invalid_argument);
}

}  // namespace
}  // namespace pyplaypen::jail
