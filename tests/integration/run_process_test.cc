// Commands on a Sandbox.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/integration/processes.h"
#include "tests/integration/sandbox_fixture.h"

namespace pyplaypen {
namespace {

class RunProcess : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    directory_ = std::filesystem::temp_directory_path() / ("run-process-" + std::to_string(::getpid()));
    std::filesystem::create_directory(directory_);
    std::filesystem::permissions(directory_, std::filesystem::perms(0777) | std::filesystem::perms::sticky_bit);
    options_.cwd = directory_;
  }
  void TearDown() override {
    std::filesystem::remove_all(directory_);
    SandboxTest::TearDown();
  }
  ProcessResult sh(const std::string& script, const Limits& limits = {}) {
    return sandbox_->run_process({"sh", "-c", script}, options_, limits);
  }

  std::filesystem::path directory_;
  ProcessOptions options_;
};

using Status = ProcessResult::Status;

TEST_F(RunProcess, GivesItsStatusAndBothStreams) {
  const ProcessResult result = sh("echo out; echo err >&2; exit 7");
  EXPECT_EQ(result.status, Status::kOk) << result.message;
  EXPECT_EQ(result.returncode, 7);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.stdout_output.bytes, "out\n");
  EXPECT_EQ(result.stderr_output.bytes, "err\n");
}

TEST_F(RunProcess, MergedOutputKeepsTheOrder) {
  options_.stderr_to = StderrTo::kStdout;
  const ProcessResult result = sh("echo a; echo b >&2; echo c; echo d >&2");
  EXPECT_EQ(result.stdout_output.bytes, "a\nb\nc\nd\n");
  EXPECT_EQ(result.stderr_output.bytes, "");
}

TEST_F(RunProcess, ASignalDeathIsMinusItsNumber) {
  const ProcessResult result = sh("kill -SEGV $$");
  EXPECT_EQ(result.status, Status::kOk);
  EXPECT_EQ(result.returncode, -SIGSEGV);
}

TEST_F(RunProcess, ATimeoutKillsTheTree) {
  Limits limits;
  limits.wall_seconds = 0.3;
  const std::string mark = "54321." + std::to_string(::getpid());
  const ProcessResult result = sh("echo begun; setsid sleep " + mark + " & sleep " + mark, limits);
  EXPECT_EQ(result.status, Status::kTimeout);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.message, "wall_seconds=0.3 exceeded");
  EXPECT_EQ(result.stdout_output.bytes, "begun\n");
  EXPECT_TRUE(processes_with(mark).empty());
}

TEST_F(RunProcess, EndsWithTheCommandNotWithTheLastHolderOfItsOutput) {
  const std::string mark = "43210." + std::to_string(::getpid());
  const ProcessResult result = sh("sleep " + mark + " & echo hi");
  EXPECT_EQ(result.returncode, 0);
  EXPECT_EQ(result.stdout_output.bytes, "hi\n");
  EXPECT_LT(result.usage.wall_ms, 10'000);
  EXPECT_TRUE(processes_with(mark).empty());
}

TEST_F(RunProcess, TheCpuLimitIsNamed) {
  Limits limits;
  limits.cpu_seconds = 1;
  const ProcessResult result = sh("while :; do :; done", limits);
  EXPECT_EQ(result.returncode, -SIGXCPU);
  EXPECT_EQ(result.message, "cpu_seconds=1 exceeded");
}

TEST_F(RunProcess, StandardInput) {
  EXPECT_EQ(sandbox_->run_process({"cat"}, options_).stdout_output.bytes, "");
  options_.stdin_source = {StandardInput::Kind::kBytes, std::string("a\0b", 3)};
  EXPECT_EQ(sandbox_->run_process({"cat"}, options_).stdout_output.bytes, std::string("a\0b", 3));
}

TEST_F(RunProcess, TheSinkGetsOutputWithinTheLimitsAsItComes) {
  Limits limits;
  limits.stdout_bytes = 5;
  std::string out;
  std::string err;
  options_.sink = [&](OutputStream stream, std::string_view bytes) {
    (stream == OutputStream::kStdout ? out : err) += bytes;
  };
  const ProcessResult result = sh("printf 1234567; printf x >&2", limits);
  EXPECT_EQ(out, "12345");
  EXPECT_EQ(err, "x");
  EXPECT_EQ(result.stdout_output.bytes, "12345\n[truncated]\n");
  EXPECT_EQ(result.stdout_output.total_bytes, 7U);
}

TEST_F(RunProcess, WhatCannotBeStartedIsSaidAsAShellSaysIt) {
  const ProcessResult missing = sandbox_->run_process({"/no/such/program"}, options_);
  EXPECT_EQ(missing.status, Status::kInternal);
  EXPECT_EQ(missing.start_error, ENOENT);
  EXPECT_EQ(missing.message, "cannot run '/no/such/program': No such file or directory");
  EXPECT_FALSE(missing.returncode);
  EXPECT_EQ(sandbox_->run_process({"no-such-program-on-path"}, options_).start_error, ENOENT);
  std::ofstream(directory_ / "text") << "not a program\n";
  EXPECT_EQ(sandbox_->run_process({"./text"}, options_).start_error, EACCES);
  EXPECT_THROW(sandbox_->run_process({}, options_), Refused);
  // None of it harms the next call.
  EXPECT_EQ(sandbox_->run_process({"true"}, options_).returncode, 0);
  EXPECT_EQ(run("1 + 1").return_value, "2");
}

TEST_F(RunProcess, AScriptWithoutAnInterpreterLineIsTheShells) {
  std::ofstream(directory_ / "script") << "echo from the script\n";
  std::filesystem::permissions(directory_ / "script", std::filesystem::perms(0755));
  EXPECT_EQ(sandbox_->run_process({"./script"}, options_).stdout_output.bytes, "from the script\n");
}

TEST_F(RunProcess, EnvironmentAndPrivateTmpdir) {
  const ProcessResult first = sh("echo $TMPDIR; test -w $TMPDIR && touch $TMPDIR/mark");
  EXPECT_EQ(first.returncode, 0) << first.stderr_output.bytes;
  const ProcessResult second = sh("ls -A $TMPDIR");
  EXPECT_EQ(second.stdout_output.bytes, "");
  options_.environment = Environment{{"ONLY", "this"}};
  const ProcessResult whole = sandbox_->run_process({"/usr/bin/env"}, options_);
  EXPECT_NE(whole.stdout_output.bytes.find("ONLY=this\n"), std::string::npos);
  EXPECT_EQ(whole.stdout_output.bytes.find("PATH="), std::string::npos);
}

TEST_F(RunProcess, LimitsBindTheCommand) {
  Limits limits;
  limits.file_bytes = 1000;
  EXPECT_NE(sh("head -c 2000 /dev/zero > f", limits).returncode, 0);
  EXPECT_LE(std::filesystem::file_size(directory_ / "f"), 1001U);
  limits = {};
  limits.open_files = 20;
  EXPECT_EQ(sh("ulimit -n", limits).stdout_output.bytes, "20\n");
  limits = {};
  limits.memory_bytes = 100 << 20;
  EXPECT_EQ(sh("ulimit -v", limits).stdout_output.bytes, "102400\n");
}

TEST_F(RunProcess, AsRootItRunsAsAnotherUserWithoutRights) {
  if (!is_root()) GTEST_SKIP() << "needs root";
  const ProcessResult result = sh("id -u; grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status");
  EXPECT_NE(result.stdout_output.bytes.substr(0, 2), "0\n");
  EXPECT_NE(result.stdout_output.bytes.find("CapEff:\t0000000000000000"), std::string::npos);
  EXPECT_NE(result.stdout_output.bytes.find("NoNewPrivs:\t1"), std::string::npos);
}

TEST_F(RunProcess, ConfinedWritesStayInCwdTmpdirAndWhatWasNamed) {
  SandboxOptions confined = quiet_options();
  confined.confine_writes = WriteConfinement::kLandlock;
  if (probe_enforcement(confined).at("filesystem_writes") == "unsupported") GTEST_SKIP() << "needs Landlock";
  Sandbox sandbox(confined);
  const auto other = directory_ / "other";
  const auto cwd = directory_ / "cwd";
  for (const auto& path : {other, cwd}) {
    std::filesystem::create_directory(path);
    std::filesystem::permissions(path, std::filesystem::perms(0777));
  }
  options_.cwd = cwd;
  const std::string script = "echo x > inside && echo y > $TMPDIR/t && echo z > /dev/null && echo w > " +
                             (other / "f").string();
  EXPECT_NE(sandbox.run_process({"sh", "-c", script}, options_).returncode, 0);
  EXPECT_TRUE(std::filesystem::exists(cwd / "inside"));
  EXPECT_FALSE(std::filesystem::exists(other / "f"));
  options_.write_paths = {other.string()};
  EXPECT_EQ(sandbox.run_process({"sh", "-c", script}, options_).returncode, 0);
  EXPECT_TRUE(std::filesystem::exists(other / "f"));
  options_.write_paths = {(directory_ / "missing").string()};
  const ProcessResult missing = sandbox.run_process({"true"}, options_);
  EXPECT_EQ(missing.status, Status::kInternal);
  EXPECT_NE(missing.message.find("missing"), std::string::npos);
}

TEST_F(RunProcess, WritePathsWithoutConfinementAreRefused) {
  options_.write_paths = {"/tmp"};
  EXPECT_THROW(sandbox_->run_process({"true"}, options_), Refused);
}

TEST_F(RunProcess, AllCommandsRunAsOneUserThatAWorkingTreeCanBeOpenedTo) {
  EXPECT_EQ(sh("id -u > who").returncode, 0);
  for (int i = 0; i < 6; ++i) {
    const Result between = run("1");  // takes another slot
    EXPECT_EQ(sh("id -u >> who").returncode, 0);
  }
  std::ifstream who(directory_ / "who");
  const std::string expected = is_root() ? "65534" : std::to_string(::getuid());
  for (std::string line; std::getline(who, line);) EXPECT_EQ(line, expected);
}

TEST_F(RunProcess, CodeAndCommandsTakeTurnsOnTheSameSlots) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(run(std::to_string(i)).return_value, std::to_string(i));
    EXPECT_EQ(sandbox_->run_process({"echo", std::to_string(i)}, options_).stdout_output.bytes,
              std::to_string(i) + "\n");
  }
}

}  // namespace
}  // namespace pyplaypen
