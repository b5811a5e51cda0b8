// Who dies when, what stays, and that the host process is as it was.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>

#include "runtime/sys/channel.h"
#include "runtime/sys/unique_fd.h"
#include "tests/integration/processes.h"
#include "tests/integration/sandbox_fixture.h"

namespace pyplaypen {
namespace {

class Lifecycle : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / ("lifecycle-" + std::to_string(::getpid()));
    std::filesystem::create_directory(directory_);
    std::filesystem::permissions(directory_, std::filesystem::perms(0755));
    const char* const before = std::getenv("TMPDIR");
    tmpdir_before_ = before != nullptr ? before : "";
    ::setenv("TMPDIR", directory_.c_str(), 1);
  }
  void TearDown() override {
    tmpdir_before_.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", tmpdir_before_.c_str(), 1);
    std::filesystem::remove_all(directory_);
  }
  bool nothing_left() const { return std::filesystem::is_empty(directory_); }

  static pid_t number(const Result& result) { return std::stoi(result.return_value); }
  static pid_t parent_of(pid_t pid) { return std::stoi(status_field(pid, "PPid")); }
  // The keeper of the slot that serves the next call, and its zygote.
  static std::pair<pid_t, pid_t> keeper_and_zygote(Sandbox& sandbox) {
    const pid_t keeper = number(sandbox.execute("import os\nos.getppid()"));
    return {keeper, parent_of(keeper)};
  }

  std::filesystem::path directory_;
  std::string tmpdir_before_;
};

TEST_F(Lifecycle, ASandboxThatEndsLeavesNothing) {
  pid_t keeper = 0;
  pid_t zygote = 0;
  {
    Sandbox sandbox(quiet_options());
    std::tie(keeper, zygote) = keeper_and_zygote(sandbox);
    EXPECT_FALSE(nothing_left());
  }
  EXPECT_TRUE(is_dead(keeper));
  EXPECT_TRUE(comes_true([&] { return is_dead(zygote); }));  // its last word is the end of its channel
  EXPECT_TRUE(nothing_left());
}

TEST_F(Lifecycle, AKilledHostTakesEverythingAlong) {
  const std::string mark = "876543." + std::to_string(::getpid());
  auto [read_end, write_end] = sys::pipe_pair();
  const pid_t host = ::fork();
  ASSERT_GE(host, 0);
  if (host == 0) {
    Sandbox sandbox(quiet_options());
    const pid_t keeper = number(sandbox.execute("import os\nos.getppid()"));
    Call call = sandbox.start("import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '" + mark +
                              "'])\nopen('left', 'w').write('x')\ntime.sleep(60)");
    if (!comes_true([&] { return !call.advance() && !processes_with(mark).empty(); })) ::_exit(1);
    (void)!::write(write_end.get(), &keeper, sizeof keeper);
    ::pause();
    ::_exit(0);
  }
  write_end.reset();
  pid_t keeper = 0;
  ASSERT_EQ(::read(read_end.get(), &keeper, sizeof keeper), static_cast<ssize_t>(sizeof keeper));
  const pid_t zygote = parent_of(keeper);
  ::kill(host, SIGKILL);
  ASSERT_EQ(::waitpid(host, nullptr, 0), host);
  EXPECT_TRUE(comes_true([&] { return is_dead(keeper) && is_dead(zygote); }));
  EXPECT_TRUE(comes_true([&] { return processes_with(mark).empty(); }));
  EXPECT_TRUE(comes_true([&] { return nothing_left(); }));
}

TEST_F(Lifecycle, AKilledZygoteFailsTheCallsInFlightAndTheNextWorks) {
  const std::string mark = "765432." + std::to_string(::getpid());
  Sandbox sandbox(quiet_options());
  const auto [keeper, zygote] = keeper_and_zygote(sandbox);
  Call call = sandbox.start("import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '" + mark +
                            "'])\ntime.sleep(60)");
  ASSERT_TRUE(comes_true([&] { return !call.advance() && !processes_with(mark).empty(); }));
  ASSERT_EQ(::kill(zygote, SIGKILL), 0);
  call.wait();
  ASSERT_TRUE(call.result().error);
  EXPECT_EQ(call.result().error->type, ErrorType::kInternal);
  EXPECT_TRUE(processes_with(mark).empty());
  const Result next = sandbox.execute("1 + 1");
  EXPECT_EQ(next.return_value, "2") << (next.ok() ? "" : next.error->message);
  EXPECT_NE(keeper_and_zygote(sandbox).second, zygote);
}

TEST_F(Lifecycle, AKilledKeeperFailsItsCallAndTheNextWorks) {
  const std::string mark = "654321." + std::to_string(::getpid());
  SandboxOptions options = quiet_options();
  options.max_concurrency = 1;
  options.spares = 0;
  Sandbox sandbox(options);
  const auto [keeper, zygote] = keeper_and_zygote(sandbox);
  Call call = sandbox.start("import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '" + mark +
                            "'])\ntime.sleep(60)");
  ASSERT_TRUE(comes_true([&] { return !call.advance() && !processes_with(mark).empty(); }));
  ASSERT_EQ(::kill(keeper, SIGKILL), 0);
  call.wait();
  ASSERT_TRUE(call.result().error);
  EXPECT_EQ(call.result().error->type, ErrorType::kInternal);
  EXPECT_TRUE(processes_with(mark).empty());
  EXPECT_EQ(sandbox.execute("1 + 1").return_value, "2");
  EXPECT_EQ(keeper_and_zygote(sandbox).second, zygote);
}

TEST_F(Lifecycle, AZygoteOrKeeperThatDiedBetweenCallsIsNoFailureOfTheNext) {
  Sandbox sandbox(quiet_options());
  for (int i = 0; i < 10; ++i) {
    const auto [keeper, zygote] = keeper_and_zygote(sandbox);
    const pid_t victim = i % 2 == 0 ? zygote : keeper;
    const std::vector<pid_t> keepers = sys::children_of(zygote);
    ASSERT_EQ(::kill(victim, SIGKILL), 0);
    ASSERT_TRUE(comes_true([victim = victim] { return is_dead(victim); }));
    // A spare that a keeper was just making is alive for a moment yet, and would be killed under its call.
    ASSERT_TRUE(comes_true([&, zygote = zygote] {
      return std::ranges::all_of(sys::children_of(zygote), [&](pid_t pid) { return std::ranges::count(keepers, pid) > 0; });
    }));
    const Result next = sandbox.execute("open('f', 'w').close()\n1 + 1");
    ASSERT_TRUE(next.ok()) << i << ": " << next.error->message;
    EXPECT_EQ(next.return_value, "2");
    std::filesystem::remove_all(next.artifact_root);
  }
}

TEST_F(Lifecycle, TheForkBombOfAKilledKeeperEnds) {
  if (probe_enforcement(quiet_options()).at("process_count") != "hard_per_call")
    GTEST_SKIP() << "no count of processes a call";
  int before = 0;
  ASSERT_EQ(::prctl(PR_GET_CHILD_SUBREAPER, &before, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);  // so that what is left would be ours
  {
    SandboxOptions options = quiet_options();
    options.max_concurrency = 1;
    options.spares = 0;
    Sandbox sandbox(options);
    const auto [keeper, zygote] = keeper_and_zygote(sandbox);
    Call call = sandbox.start("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass");
    const std::function<size_t(pid_t)> descendants = [&](pid_t pid) {
      size_t count = 0;
      for (const pid_t child : sys::children_of(pid)) count += 1 + descendants(child);
      return count;
    };
    // Its limit is 16; at it, each that dies is replaced at once.
    ASSERT_TRUE(comes_true([&, keeper = keeper] { return !call.advance() && descendants(keeper) >= 16; }));
    ASSERT_EQ(::kill(keeper, SIGKILL), 0);
    call.wait();
    EXPECT_EQ(call.result().error->type, ErrorType::kInternal);
    EXPECT_EQ(descendants(zygote), 0U);
    EXPECT_EQ(sandbox.execute("1 + 1").return_value, "2");
  }
  EXPECT_TRUE(comes_true([] { return ::waitpid(-1, nullptr, WNOHANG) < 0; }));
  ::prctl(PR_SET_CHILD_SUBREAPER, before, 0, 0, 0);
}

TEST_F(Lifecycle, AKilledSpareIsReplaced) {
  SandboxOptions options = quiet_options();
  options.max_concurrency = 1;
  options.spares = 1;
  Sandbox sandbox(options);
  const auto [keeper, zygote] = keeper_and_zygote(sandbox);
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t pid = std::stoi(name);
    if (status_field(pid, "PPid") != std::to_string(keeper)) continue;
    ::kill(pid, SIGKILL);
    EXPECT_TRUE(comes_true([pid] { return is_dead(pid); }));
  }
  // Nothing of a call's code has run in it, so that no call need hear of it.
  for (int i = 0; i < 4; ++i) EXPECT_EQ(sandbox.execute("1 + 1").return_value, "2");
}

TEST_F(Lifecycle, WhatAKilledSupervisorLeftIsSweptByTheNextStart) {
  // Host, zygote and keepers killed at once: nobody is left to remove anything.
  const auto stale = directory_ / "pyplaypen-1-abcdefgh01234567";
  std::filesystem::create_directories(stale / "0" / "work");
  const auto other = directory_ / "pyplaypen-notes";
  std::filesystem::create_directory(other);
  { Sandbox sandbox(quiet_options()); }
  EXPECT_FALSE(std::filesystem::exists(stale));
  EXPECT_TRUE(std::filesystem::exists(other));
}

TEST_F(Lifecycle, WhenMemoryRunsOutCallsAreEndedFirstAndTheHostIsAsItWas) {
  const auto score_of = [](const std::string& pid) {
    return std::stoi(sys::read_small_file("/proc/" + pid + "/oom_score_adj"));
  };
  const int own = score_of("self");
  Sandbox sandbox(quiet_options());
  const auto [keeper, zygote] = keeper_and_zygote(sandbox);
  const std::string code = "int(open('/proc/self/oom_score_adj').read())";
  EXPECT_EQ(sandbox.execute(code).return_value, "1000");
  EXPECT_EQ(sandbox.execute("import subprocess\nint(subprocess.run(['cat', '/proc/self/oom_score_adj'], "
                            "capture_output=True).stdout)").return_value,
            "1000");
  EXPECT_EQ(sandbox.run_process({"cat", "/proc/self/oom_score_adj"}).stdout_output.bytes, "1000\n");
  EXPECT_EQ(score_of(std::to_string(keeper)), std::max(own, 500));
  EXPECT_EQ(score_of(std::to_string(zygote)), std::max(own, 500));
  EXPECT_EQ(score_of("self"), own);
}

// ---- The host. ----

volatile sig_atomic_t g_sigchld = 0;

TEST_F(Lifecycle, TheHostSeesNeitherSigchldNorChildrenNorThreads) {
  struct sigaction count{};
  count.sa_handler = [](int) { g_sigchld = g_sigchld + 1; };
  struct sigaction before{};
  ASSERT_EQ(::sigaction(SIGCHLD, &count, &before), 0);
  const mode_t mask = ::umask(027);
  {
    Sandbox sandbox(quiet_options());
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(sandbox.execute("import subprocess\nsubprocess.run(['true'])\n1").ok());
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
    EXPECT_EQ(sys::thread_count(), 1);
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  EXPECT_EQ(g_sigchld, 0);
  int subreaper = -1;
  EXPECT_EQ(::prctl(PR_GET_CHILD_SUBREAPER, &subreaper, 0, 0, 0), 0);
  EXPECT_EQ(subreaper, 0);
  EXPECT_EQ(::umask(mask), 027U);
  struct sigaction now{};
  ::sigaction(SIGCHLD, &before, &now);
  EXPECT_EQ(now.sa_handler, count.sa_handler);
  sigset_t blocked;
  ::sigprocmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_FALSE(sigismember(&blocked, SIGCHLD));
}

TEST_F(Lifecycle, TheHostsDescriptorsReachNoCall) {
  const sys::UniqueFd leaked(::open("/etc/hostname", O_RDONLY));  // not CLOEXEC
  ASSERT_TRUE(leaked);
  Sandbox sandbox(quiet_options());
  const Result result = sandbox.execute(
      "import os\n[os.readlink('/proc/self/fd/' + f) for f in os.listdir('/proc/self/fd') if f not in '012' and "
      "os.path.exists('/proc/self/fd/' + f)]");
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(result.return_value.find("hostname"), std::string::npos) << result.return_value;
  // Its own channel to us, and the descriptor that listed.
  EXPECT_NE(result.return_value.find("socket:"), std::string::npos);
}

TEST_F(Lifecycle, AForkedCopyOfTheHostEndsNothing) {
  Sandbox sandbox(quiet_options());
  const pid_t copy = ::fork();
  if (copy == 0) {
    sandbox.~Sandbox();
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(copy, nullptr, 0), copy);
  EXPECT_EQ(sandbox.execute("1 + 1").return_value, "2");
}

TEST_F(Lifecycle, TenThousandCallsCostWhatAHundredCost) {
  Sandbox sandbox(quiet_options());
  const auto calls = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const Result result = sandbox.execute(i % 50 == 0 ? "open('.x', 'w').write('x')\n1 + 1" : "1 + 1");
      ASSERT_TRUE(result.ok()) << i << ": " << result.error->message;
    }
  };
  const auto resident_kb = [](pid_t pid) { return std::stol(status_field(pid, "VmRSS")); };
  const auto count_entries = [&] {
    const std::filesystem::recursive_directory_iterator all(
        directory_, std::filesystem::directory_options::skip_permission_denied);
    return std::distance(begin(all), end(all));
  };
  calls(100);
  const auto zygote = keeper_and_zygote(sandbox).second;
  const size_t fds = sys::open_fds().size();
  const long host_kb = resident_kb(::getpid());
  const long zygote_kb = resident_kb(zygote);
  const auto entries = count_entries();
  calls(9'900);
  EXPECT_EQ(keeper_and_zygote(sandbox).second, zygote);
  EXPECT_LE(sys::open_fds().size(), fds + 8);  // a slot more may hold a spare now
#ifndef __SANITIZE_ADDRESS__  // which keeps 256 MiB of freed memory for a while
  EXPECT_LE(resident_kb(::getpid()), host_kb + 1024);
#else
  (void)host_kb;
#endif
  EXPECT_LE(resident_kb(zygote), zygote_kb + 1024);
  EXPECT_LE(count_entries(), entries + 8);
}

}  // namespace
}  // namespace pyplaypen
