// The host's system runs out of things, or somebody takes them away: each time a sentence that names
// what it was and the way out, and the next call works once it is there again.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmath>
#include <vector>

#include "runtime/sys/unique_fd.h"
#include "tests/integration/processes.h"
#include "tests/integration/sandbox_fixture.h"
#include "tests/unit/ordinary_user.h"
#include "tests/unit/own_process.h"

namespace pyplaypen {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

using testing::in_own_process;
using testing::run_as;

constexpr char kLeavesAFile[] = "open('.left', 'w').close()\n1 + 1";

// No spare: what a call needs is made while it waits.
SandboxOptions without_spares() {
  SandboxOptions options = quiet_options();
  options.max_concurrency = 1;
  options.spares = 0;
  return options;
}

std::string answer_of(const Result& result) {
  return result.ok() ? result.return_value
                     : std::string(error_type_name(result.error->type)) + ": " + result.error->message;
}

void expect_failure(const Result& result, const std::string& what, const std::string& way_out) {
  const std::string answer = answer_of(result);
  EXPECT_TRUE(answer.starts_with("internal: ")) << answer;
  EXPECT_NE(answer.find(what), std::string::npos) << answer;
  EXPECT_NE(answer.find(way_out), std::string::npos) << answer;
}

// A soft limit of another process; raising it again needs no privilege.
class Squeeze {
 public:
  Squeeze(pid_t pid, __rlimit_resource resource, rlim_t soft) : pid_(pid), resource_(resource) {
    EXPECT_EQ(::prlimit(pid, resource, nullptr, &before_), 0);
    const rlimit less{soft, before_.rlim_max};
    EXPECT_EQ(::prlimit(pid, resource, &less, nullptr), 0);
  }
  ~Squeeze() { ::prlimit(pid_, resource_, &before_, nullptr); }
  Squeeze(const Squeeze&) = delete;
  Squeeze& operator=(const Squeeze&) = delete;

 private:
  pid_t pid_;
  __rlimit_resource resource_;
  rlimit before_{};
};

// What a Sandbox finds out about the kernel for its user it finds out once a process: each test has its own.
class Recovery : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / ("recovery-" + std::to_string(::getpid()));
    make(directory_);
    const char* const before = std::getenv("TMPDIR");
    tmpdir_before_ = before != nullptr ? before : "";
    ::setenv("TMPDIR", directory_.c_str(), 1);
  }
  void TearDown() override {
    tmpdir_before_.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", tmpdir_before_.c_str(), 1);
    std::filesystem::remove_all(directory_);
  }

  static void make(const std::filesystem::path& directory) {
    std::filesystem::create_directory(directory);
    std::filesystem::permissions(directory, std::filesystem::perms(0777));
  }
  // Keepers that prepare for their next call may be making entries meanwhile.
  static void remove(const std::filesystem::path& directory) {
    EXPECT_TRUE(comes_true([&] {
      std::error_code in_use;
      std::filesystem::remove_all(directory, in_use);
      return !std::filesystem::exists(directory);
    }));
  }
  static pid_t keeper_of(Sandbox& sandbox) {
    return std::stoi(sandbox.execute("import os\nos.getppid()").return_value);
  }
  static pid_t parent_of(pid_t pid) { return std::stoi(status_field(pid, "PPid")); }
  std::filesystem::path base() const { return std::filesystem::directory_iterator(directory_)->path(); }

  std::filesystem::path directory_;
  std::string tmpdir_before_;
};

// ---- Descriptors of the host. ----

void without_descriptors(const std::function<void()>& body) {
  const sys::UniqueFd next(::fcntl(0, F_DUPFD, 0));
  const Squeeze none(0, RLIMIT_NOFILE, static_cast<rlim_t>(next.get() + 1));
  body();
}

TEST_F(Recovery, NoDescriptorsForTheCallsChild) {
  in_own_process([] {
    Sandbox sandbox(without_spares());
    const std::vector<int> before = sys::open_fds();
    without_descriptors([&] { expect_failure(sandbox.execute("1 + 1"), "descriptors of a child", "RLIMIT_NOFILE"); });
    EXPECT_EQ(answer_of(sandbox.execute("1 + 1")), "2");
    EXPECT_LE(sys::open_fds().size(), before.size());
  });
}

TEST_F(Recovery, NoDescriptorsForAnotherKeeper) {
  if (kSanitized) GTEST_SKIP() << "UBSan looks at objects through a pipe, and finds fault where it can have none";
  in_own_process([] {
    SandboxOptions options = without_spares();
    options.max_concurrency = 2;
    Sandbox sandbox(options);
    Call first = sandbox.start("import time\ntime.sleep(60)");
    without_descriptors([&] { expect_failure(sandbox.execute("1 + 1"), "socket", "RLIMIT_NOFILE"); });
    EXPECT_EQ(answer_of(sandbox.execute("1 + 1")), "2");
  });
}

TEST_F(Recovery, NoDescriptorsForTheInputOrAPlaceInTheQueue) {
  if (kSanitized) GTEST_SKIP() << "UBSan looks at objects through a pipe, and finds fault where it can have none";
  in_own_process([] {
    SandboxOptions options = quiet_options();
    options.max_concurrency = 1;
    Sandbox sandbox(options);
    Context with_input;
    with_input.stdin_source = {StandardInput::Kind::kBytes, "text\n"};
    without_descriptors(
        [&] { expect_failure(sandbox.execute("input()", with_input), "memfd_create", "RLIMIT_NOFILE"); });
    {
      Call first = sandbox.start("import time\ntime.sleep(60)");
      without_descriptors([&] { expect_failure(sandbox.execute("1"), "eventfd", "RLIMIT_NOFILE"); });
    }
    // Neither has kept the only turn.
    EXPECT_EQ(answer_of(sandbox.execute("input()", with_input)), "\"text\"");
    EXPECT_EQ(answer_of(sandbox.execute("1 + 1")), "2");
  });
}

TEST_F(Recovery, NoDescriptorsForASandbox) {
  if (kSanitized) GTEST_SKIP() << "UBSan looks at objects through a pipe, and finds fault where it can have none";
  in_own_process([] {
    without_descriptors([] {
      try {
        Sandbox sandbox(quiet_options());
        ADD_FAILURE() << "not refused";
      } catch (const Refused& refused) {
        EXPECT_NE(std::string(refused.what()).find("RLIMIT_NOFILE"), std::string::npos) << refused.what();
      }
    });
    EXPECT_EQ(answer_of(Sandbox(quiet_options()).execute("1 + 1")), "2");
  });
}

// ---- Processes and memory, of ours behind it. ----

TEST_F(Recovery, NoProcessesForAChildOrAKeeper) {
  if (::geteuid() == 0 && !testing::everybody_may_enter(PYPLAYPEN_BUILD))
    GTEST_SKIP() << "an ordinary user may not go where the build lies";
  // As root nothing of ours is counted.
  run_as(::geteuid() == 0 ? testing::kOrdinaryUser : ::geteuid(), [] {
    Sandbox sandbox(without_spares());
    const pid_t keeper = keeper_of(sandbox);
    const pid_t zygote = parent_of(keeper);
    {
      const Squeeze child(keeper, RLIMIT_NPROC, 1);
      expect_failure(sandbox.execute("1 + 1"), "fork: Resource temporarily unavailable", "RLIMIT_NPROC");
    }
    EXPECT_EQ(answer_of(sandbox.execute("1 + 1")), "2");
    const pid_t next_keeper = keeper_of(sandbox);
    EXPECT_EQ(parent_of(next_keeper), zygote);
    {
      const Squeeze another(zygote, RLIMIT_NPROC, 1);
      ASSERT_EQ(::kill(next_keeper, SIGKILL), 0);
      ASSERT_TRUE(comes_true([&] { return is_dead(next_keeper); }));
      expect_failure(sandbox.execute("1 + 1"), "fork: Resource temporarily unavailable", "RLIMIT_NPROC");
    }
    EXPECT_EQ(answer_of(sandbox.execute("1 + 1")), "2");
  });
}

TEST_F(Recovery, NoMemoryInZygoteAndKeeper) {
  in_own_process([] {
    Sandbox sandbox(without_spares());
    const pid_t keeper = keeper_of(sandbox);
    const pid_t zygote = parent_of(keeper);
    // How much is free in their heaps already cannot be told: either may go on for a while.
    const std::string code = "x = bytearray(1 << 20)\nlen(x)";
    for (const pid_t pid : {keeper, zygote}) {
      const Squeeze none(pid, RLIMIT_AS, 4096);
      if (pid == zygote) ::kill(keeper, SIGKILL);
      const Result result = sandbox.execute(code);
      if (!result.ok()) {
        EXPECT_TRUE(result.error->type == ErrorType::kInternal || result.error->type == ErrorType::kMemoryLimit)
            << answer_of(result);
        EXPECT_NE(answer_of(result), "internal: ");
      }
    }
    EXPECT_EQ(answer_of(sandbox.execute(code)), "1048576");
  });
}

// ---- The directory of the calls. ----

TEST_F(Recovery, ADirectoryThatSomebodyRemovedIsMadeAgain) {
  in_own_process([this] {
    for (const int spares : {0, 2}) {
      SandboxOptions options = quiet_options();
      options.spares = spares;
      Sandbox sandbox(options);
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(answer_of(sandbox.execute(kLeavesAFile)), "2");
        remove(base());
        EXPECT_EQ(answer_of(sandbox.execute(kLeavesAFile)), "2") << "spares: " << spares;
      }
    }
    EXPECT_TRUE(std::filesystem::is_empty(directory_));
  });
}

TEST_F(Recovery, WithoutTmpdirTheSentenceSaysSo) {
  in_own_process([this] {
    Sandbox sandbox(quiet_options());
    EXPECT_EQ(answer_of(sandbox.execute(kLeavesAFile)), "2");
    remove(directory_);
    expect_failure(sandbox.execute(kLeavesAFile), "open(" + directory_.string() + "): No such file", "TMPDIR");
    make(directory_);
    EXPECT_EQ(answer_of(sandbox.execute(kLeavesAFile)), "2");
  });
}

// Until the calling process, and what it starts, has ended.
void mount_small_disk(const std::filesystem::path& at, unsigned long flags = 0) {
  constexpr char kOptions[] = "size=1m,nr_inodes=64,mode=1777";
  if ((flags & MS_REMOUNT) == 0) {
    ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
    ASSERT_EQ(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  }
  ASSERT_EQ(::mount("none", at.c_str(), "tmpfs", flags, kOptions), 0);
}

TEST_F(Recovery, AReadOnlyDiskIsNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to mount a disk";
  in_own_process([this] {
    mount_small_disk(directory_);
    Sandbox sandbox(without_spares());
    EXPECT_EQ(answer_of(sandbox.execute(kLeavesAFile)), "2");
    mount_small_disk(directory_, MS_REMOUNT | MS_RDONLY);
    expect_failure(sandbox.execute("1 + 1"), directory_.string(), "TMPDIR");
    expect_failure(sandbox.execute("1 + 1"), "Read-only file system", "TMPDIR");
    mount_small_disk(directory_, MS_REMOUNT);
    EXPECT_EQ(answer_of(sandbox.execute(kLeavesAFile)), "2");
  });
}

TEST_F(Recovery, AFullDisk) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to mount a small disk";
  in_own_process([this] {
    mount_small_disk(directory_);
    Sandbox sandbox(without_spares());
    EXPECT_EQ(answer_of(sandbox.execute("1 + 1")), "2");
    // Bytes: the code's own affair.
    EXPECT_EQ(answer_of(sandbox.execute("open('f', 'wb').write(b'x' * (2 << 20))")),
              "runtime: OSError: [Errno 28] No space left on device");
    EXPECT_EQ(answer_of(sandbox.execute(kLeavesAFile)), "2");
    // Entries: ours, too.
    std::vector<std::filesystem::path> filling;
    for (;;) {
      filling.push_back(directory_ / ("filling-" + std::to_string(filling.size())));
      if (!sys::UniqueFd(::open(filling.back().c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600))) break;
    }
    const Result full = sandbox.execute(kLeavesAFile);
    if (full.error && full.error->type == ErrorType::kInternal) {
      expect_failure(full, "No space left on device", "TMPDIR");
    } else {  // what the last call left was deleted just in time: the code met it itself
      EXPECT_EQ(answer_of(full), "runtime: OSError: [Errno 28] No space left on device: '.left'");
    }
    for (const auto& file : filling) std::filesystem::remove(file);
    EXPECT_EQ(answer_of(sandbox.execute(kLeavesAFile)), "2");
  });
}

// ---- The host. ----

TEST_F(Recovery, AHostThatIsKilledAtAnyMomentLeavesNothingBehindTheNextStart) {
  in_own_process([this] {
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);  // what is left would be ours
    for (int i = 0; i < 24; ++i) {
      const pid_t host = ::fork();
      ASSERT_GE(host, 0);
      if (host == 0) {
        Sandbox sandbox(quiet_options());
        for (;;)
          (void)sandbox.execute("import subprocess, os\nopen('f', 'w').close()\nos.mkdir('.d')\n"
                                "subprocess.Popen(['setsid', 'sleep', '600'])\n1",
                                {std::string(), std::nullopt, "{}", directory_ / "kept", {}});
      }
      // Not a wait for anything: the moments are spread over its start and its first calls.
      std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(std::pow(1.35, i))));
      ASSERT_EQ(::kill(host, SIGKILL), 0);
      EXPECT_TRUE(comes_true([] {
        while (::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
        }
        return sys::children().empty();
      })) << "alive after moment " << i;
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    std::filesystem::remove_all(directory_ / "kept");
    { Sandbox sandbox(quiet_options()); }
    EXPECT_TRUE(std::filesystem::is_empty(directory_)) << base();
  });
}

}  // namespace
}  // namespace pyplaypen
