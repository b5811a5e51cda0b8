// A Sandbox with a control group: what a call's processes take together.
#include <filesystem>

#include "pyplaypen/privilege.h"
#include "tests/integration/processes.h"
#include "tests/integration/sandbox_fixture.h"
#include "tests/unit/cgroups.h"

namespace pyplaypen {
namespace {

// In a group of the test's own, so that what it must not leave shows.
class CgroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::string& top : testing::counting_cgroups()) {
      parents_.push_back(std::filesystem::path(top) / ("test-" + std::to_string(::getpid())));
      std::error_code error;
      if (!std::filesystem::create_directory(parents_.back(), error)) GTEST_SKIP() << "no group can be made in " << top;
    }
    if (parents_.empty()) GTEST_SKIP() << "no cgroup that counts memory and processes may be written";
  }
  void TearDown() override {
    for (const auto& parent : parents_) {
      EXPECT_EQ(groups_in(parent), 0) << parent;
      ::rmdir(parent.c_str());
    }
  }

  static int groups_in(const std::filesystem::path& parent) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(parent)) count += entry.is_directory() ? 1 : 0;
    return count;
  }

  SandboxOptions options() const {
    SandboxOptions options = quiet_options();
    options.cgroups = parents_;
    return options;
  }
  static std::string type_of(const Result& result) {
    return result.ok() ? "ok" : std::string(error_type_name(result.error->type)) + ": " + result.error->message;
  }
  static Limits small_memory() {
    Limits limits;
    limits.memory_bytes = uint64_t{100} << 20;
    return limits;
  }

  std::vector<std::filesystem::path> parents_;
};

constexpr char kGreedyFamily[] =
    "import os, signal\n"
    "def greedy(size):\n"
    "  pid = os.fork()\n"
    "  if pid == 0:\n"
    "    kept = bytearray(size)\n"
    "    os.write(told, b'x')\n"
    "    signal.pause()\n"
    "  return pid\n"
    "ready, told = os.pipe()\n";

TEST_F(CgroupTest, ItSaysThatACallIsCountedAsAWhole) {
  const Sandbox sandbox(options());
  for (const char* key : {"memory_bytes", "process_count", "process_count_of_commands"})
    EXPECT_EQ(sandbox.enforcement().at(key), "hard_per_call") << key;
  EXPECT_EQ(probe_enforcement(options()).at("memory_bytes"), "hard_per_call");
}

constexpr char kLiftLimits[] =
    "import os\n"
    "lifted = []\n"
    "for line in open('/proc/self/cgroup'):\n"
    "  _, controllers, path = line.strip().split(':', 2)\n"
    "  for top in '/sys/fs/cgroup', '/sys/fs/cgroup/' + controllers, '/sys/fs/cgroup/unified':\n"
    "    for name in 'memory.max', 'pids.max', 'memory.limit_in_bytes', 'cgroup.procs', '../cgroup.procs':\n"
    "      if not os.path.exists(top + path + '/' + name): continue\n"
    "      try: open(top + path + '/' + name, 'w').close()\n"
    "      except OSError: continue\n"
    "      lifted.append(name)\n";

TEST_F(CgroupTest, ACallCannotLiftItsLimitsNorLeave) {
  Sandbox sandbox(options());
  EXPECT_EQ(sandbox.execute(std::string(kLiftLimits) + "lifted").return_value, "[]");
  SandboxOptions confined = options();
  confined.child_uid = 0;  // who owns the files
  confined.confine_writes = WriteConfinement::kLandlock;
  if (landlock_abi() < 1) GTEST_SKIP() << "no Landlock";
  Sandbox by_landlock(confined);
  EXPECT_EQ(by_landlock.enforcement().at("process_count"), "hard_per_call");
  EXPECT_EQ(by_landlock.execute(std::string(kLiftLimits) + "lifted").return_value, "[]");
  confined.confine_writes = WriteConfinement::kNone;
  Sandbox open(confined);
  EXPECT_NE(open.enforcement().at("process_count"), "hard_per_call");
  EXPECT_NE(open.execute(std::string(kLiftLimits) + "lifted").return_value, "[]");  // so the two above are not for nothing
}

TEST_F(CgroupTest, MemoryOfAllProcessesTogether) {
  Sandbox sandbox(options());
  // Each is far below the limit that each process has; together they are above the call's.
  const Result result = sandbox.execute(std::string(kGreedyFamily) +
                                            "pids = [greedy(60 << 20) for _ in range(4)]\n"
                                            "os.waitstatus_to_exitcode(os.wait()[1])",
                                        {}, small_memory());
  EXPECT_EQ(result.return_value, "-9") << type_of(result);
  // The next call is told nothing of it.
  const Result killed = sandbox.execute("import os\nos.kill(os.getpid(), 9)", {}, small_memory());
  EXPECT_EQ(type_of(killed).substr(0, 6), "crash:");
  EXPECT_EQ(sandbox.execute("1 + 1").return_value, "2");
}

// Whoever has most is killed: this process itself, while each of the two is below its own limit.
constexpr char kGreedyParent[] =
    "greedy(55 << 20)\n"
    "os.read(ready, 1)\n"
    "kept = [bytes(range(256)) * 4096 for _ in range(78)]\n"
    "signal.pause()";

TEST_F(CgroupTest, TheProcessThatEvaluatesIsKilledAsMemoryLimit) {
  Sandbox sandbox(options());
  const Result result = sandbox.execute(std::string(kGreedyFamily) + kGreedyParent, {}, small_memory());
  EXPECT_EQ(type_of(result), "memory_limit: memory_bytes=104857600 is used up by the call's processes together");
  EXPECT_EQ(sandbox.execute("1 + 1").return_value, "2");
}

TEST_F(CgroupTest, ACommandToo) {
  Sandbox sandbox(options());
  ProcessOptions process;
  process.cwd = "/";
  const ProcessResult result = sandbox.run_process(
      {"/usr/bin/python3", "-c", std::string(kGreedyFamily) + kGreedyParent}, process, small_memory());
  EXPECT_EQ(result.returncode, -SIGKILL) << result.stderr_output.bytes;
  EXPECT_EQ(result.message, "memory_bytes=104857600 is used up by the call's processes together");
}

TEST_F(CgroupTest, ProcessesJustBelowAndJustAbove) {
  SandboxOptions as_root = options();
  as_root.child_uid = 0;  // whose processes RLIMIT_NPROC never counts
  Sandbox sandbox(as_root);
  const auto forks = [&](int count) {
    Limits limits;
    limits.process_count = 8;
    return type_of(sandbox.execute("import os, signal\n"
                                   "for _ in range(" + std::to_string(count) + "):\n"
                                   "  if os.fork() == 0: signal.pause()\n", {}, limits));
  };
  EXPECT_EQ(forks(7), "ok");
  EXPECT_EQ(forks(8).substr(0, 13), "process_limit");
  EXPECT_EQ(forks(7), "ok");
}

TEST_F(CgroupTest, OneThatCannotBeUsedIsToldOfOrRefused) {
  SandboxOptions wrong = quiet_options();
  wrong.cgroups = {"/no/such/cgroup"};
  std::string said;
  wrong.warn = [&](std::string_view sentence) { said += sentence; };
  {
    Sandbox sandbox(wrong);
    EXPECT_NE(said.find("/no/such/cgroup"), std::string::npos) << said;
    EXPECT_EQ(sandbox.enforcement().at("memory_bytes"), "hard_per_process");
    EXPECT_EQ(sandbox.execute("1 + 1").return_value, "2");
  }
  wrong.strictness = Strictness::kStrict;
  EXPECT_THROW(Sandbox{wrong}, Refused);
}

TEST_F(CgroupTest, WhatNobodyKnowsAnyMoreEndsWithTheGroup) {
  const std::string mark = "765432." + std::to_string(::getpid());
  SandboxOptions one_slot = options();
  one_slot.max_concurrency = 1;
  one_slot.spares = 0;
  Sandbox sandbox(one_slot);
  Call call = sandbox.start("import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '" + mark + "'])\ntime.sleep(60)");
  // Kept from one look: in the middle of its exec it shows no command line.
  std::vector<pid_t> found;
  ASSERT_TRUE(comes_true([&] { return !call.advance() && !(found = processes_with(mark)).empty(); }))
      << (call.advance() ? type_of(call.result()) : "it still runs");
  const pid_t leader = std::stoi(status_field(found.front(), "PPid"));
  const pid_t keeper = std::stoi(status_field(leader, "PPid"));
  const pid_t zygote = std::stoi(status_field(keeper, "PPid"));
  ::kill(zygote, SIGSTOP);  // so that neither of them acts on the other's death
  ::kill(keeper, SIGKILL);
  ::kill(zygote, SIGKILL);
  call.wait();
  EXPECT_EQ(type_of(call.result()).substr(0, 9), "internal:");
  EXPECT_TRUE(comes_true([&] { return processes_with(mark).empty(); }));
  EXPECT_EQ(sandbox.execute("1 + 1").return_value, "2");
}

}  // namespace
}  // namespace pyplaypen
