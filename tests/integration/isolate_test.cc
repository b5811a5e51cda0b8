#include "pyplaypen/isolate.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "runtime/jail/namespaces.h"
#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"
#include "runtime/sys/proc.h"
#include "tests/fault/deny_namespaces.h"
#include "tests/unit/ordinary_user.h"
#include "tests/unit/own_process.h"
#include "tests/unit/temp_tree.h"

namespace pyplaypen {
namespace {

using testing::AsWho;
using testing::in_own_process;
using testing::TempTree;
using testing::Who;
using Status = IsolateOutcome::Status;
using Clock = std::chrono::steady_clock;

constexpr char kNoUserNamespaces[] = "user namespaces are refused here";

constexpr Namespace kEach[] = {Namespace::kUser, Namespace::kMount, Namespace::kPid,   Namespace::kNet,
                               Namespace::kIpc,  Namespace::kUts,   Namespace::kCgroup};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string link_of(Namespace one) {
  const std::string name = one == Namespace::kMount ? "mnt" : std::string(namespace_name(one));
  char text[64] = {};
  (void)!::readlink(("/proc/self/ns/" + name).c_str(), text, sizeof text - 1);
  return text;
}

// Which namespaces of the callable's are not ours.
Namespaces apart(const IsolateOptions& options) {
  std::string before;
  for (const Namespace one : kEach) before += link_of(one) + " ";
  const IsolateOutcome outcome = run(
      [] {
        for (const Namespace one : kEach) std::cout << link_of(one) << " ";
      },
      options);
  EXPECT_TRUE(outcome.ok) << outcome.message << outcome.stderr_output.bytes;
  std::istringstream ours(before);
  std::istringstream theirs(outcome.stdout_output.bytes);
  Namespaces found;
  for (const Namespace one : kEach) {
    std::string a;
    std::string b;
    ours >> a;
    theirs >> b;
    EXPECT_NE(b, "");
    if (a != b) found.insert(one);
  }
  return found;
}

IsolateOptions with(Namespaces namespaces) {
  IsolateOptions options;
  options.namespaces = namespaces;
  options.strictness = Strictness::kStrict;
  options.note = [](std::string_view) {};
  return options;
}

IsolateOptions quiet(Namespaces namespaces = kDefaultNamespaces) {
  IsolateOptions options;
  options.namespaces = namespaces;
  options.note = [](std::string_view) {};
  return options;
}

std::string shell(const std::string& script, const IsolateOptions& options) {
  const IsolateOutcome outcome = run_argv({"/bin/sh", "-c", script}, options);
  EXPECT_TRUE(outcome.ok) << outcome.message << outcome.stderr_output.bytes;
  return outcome.stdout_output.bytes;
}

// A pipe whose writers we want to see gone.
struct Witness {
  Witness() { std::tie(read_end, write_end) = sys::pipe_pair(); }
  // Nobody else has the writing end any more.
  bool all_gone() {
    write_end.reset();
    char byte = 0;
    sys::set_nonblocking(read_end.get());
    return ::read(read_end.get(), &byte, 1) == 0;
  }
  sys::UniqueFd read_end;
  sys::UniqueFd write_end;
};

// As root and as somebody who is nobody in particular.
class IsolateTest : public AsWho {
 protected:
  void run_here(const std::function<void()>& body) {
    run([&] {
      // A process that changed its user is not dumpable, and then may not write maps.
      ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
      body();
    });
  }
};
INSTANTIATE_TEST_SUITE_P(, IsolateTest, ::testing::Values(Who::kSelf, Who::kOrdinary), testing::who_name);

// ---- Usage, as the first lines of such a tool's page show it. ----

TEST_P(IsolateTest, AProgramUnderLimitsAndATimeout) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    IsolateOptions options;
    options.limits.cpu_seconds = 5;
    options.limits.memory_bytes = 64 << 20;
    options.timeout_seconds = 10;
    const IsolateOutcome outcome = run_argv({"/usr/bin/python3", "-c", "print(2 + 2)"}, options);
    EXPECT_TRUE(outcome.ok) << outcome.message << outcome.stderr_output.bytes;
    EXPECT_EQ(outcome.status, Status::kExited);
    EXPECT_EQ(outcome.stdout_output.bytes, "4\n");
    EXPECT_EQ(outcome.namespaces, kDefaultNamespaces);
  });
}

TEST_P(IsolateTest, ACallableRunsAsUidZero) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    const IsolateOutcome outcome =
        pyplaypen::run([] { std::cout << "running as uid " << ::getuid() << ' ' << ::getgid(); });
    EXPECT_TRUE(outcome.ok) << outcome.message;
    EXPECT_EQ(outcome.stdout_output.bytes, "running as uid 0 0");
  });
}

TEST_P(IsolateTest, AnEscapedSystemErrorIsItsErrno) {
  run_here([] {
    const IsolateOutcome outcome =
        pyplaypen::run([] { throw std::system_error(ENOSPC, std::generic_category(), "no room"); });
    EXPECT_FALSE(outcome.ok);
    EXPECT_EQ(outcome.status, Status::kExited);
    EXPECT_EQ(outcome.exit_status, 1);
    EXPECT_EQ(outcome.error_number, ENOSPC);
    EXPECT_NE(outcome.message.find("no room"), std::string::npos);
  });
}

TEST(Isolate, OtherEscapedExceptionsAreTheirMessage) {
  const IsolateOutcome outcome = run([] { throw std::runtime_error(std::string(5000, 'x')); });
  EXPECT_FALSE(outcome.ok);
  EXPECT_EQ(outcome.error_number, 0);
  EXPECT_EQ(outcome.message, std::string(2048, 'x'));
  EXPECT_FALSE(run([] { throw 5; }).ok);
  EXPECT_EQ(run([]() -> int { throw sys::Error(EBADF, "read"); }).error_number, EBADF);
}

// ---- Namespaces. ----

TEST_P(IsolateTest, EachNamespaceAlone) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    for (const Namespace one : kEach) {
      Namespaces expected{one};
      if (::geteuid() != 0) expected.insert(Namespace::kUser);
      EXPECT_EQ(to_string(apart(with({one}))), to_string(expected));
    }
  });
}

TEST_P(IsolateTest, AllTogether) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    EXPECT_EQ(to_string(apart(with(kAllNamespaces))), to_string(kAllNamespaces));
    EXPECT_EQ(to_string(apart(with({}))), "none");
  });
}

TEST_P(IsolateTest, TheCgroupNamespaceIsOptIn) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    EXPECT_EQ(to_string(apart({})), to_string(kDefaultNamespaces));
    EXPECT_FALSE(kDefaultNamespaces.contains(Namespace::kCgroup));
  });
}

TEST_P(IsolateTest, TheRealIdsAreMappedToZeroOrToThemselves) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    const std::string uid = std::to_string(::getuid());
    const std::string gid = std::to_string(::getgid());
    const std::string script = "set -- $(cat /proc/self/uid_map /proc/self/gid_map); echo $*; id -u; id -g";
    EXPECT_EQ(shell(script, {}), "0 " + uid + " 1 0 " + gid + " 1\n0\n0\n");
    IsolateOptions self;
    self.map_to = MapTo::kSelf;
    EXPECT_EQ(shell(script, self), uid + " " + uid + " 1 " + gid + " " + gid + " 1\n" + uid + "\n" + gid + "\n");
  });
}

TEST_P(IsolateTest, RootInsideRulesItsNamespacesAndNothingElse) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    const IsolateOutcome outcome = pyplaypen::run([] {
      sys::check(::sethostname("inside", 6), "sethostname");
      sys::check(::mount("none", "/mnt", "tmpfs", 0, nullptr), "mount");
      return ::setpriority(PRIO_PROCESS, 0, -5) == 0 && ::geteuid() != 0 ? 9 : 0;
    });
    EXPECT_TRUE(outcome.ok) << outcome.message;
    char name[65] = {};
    ::gethostname(name, sizeof name);
    EXPECT_STRNE(name, "inside");
    const std::string mounts = sys::read_small_file("/proc/self/mounts");
    EXPECT_EQ(mounts.find(" /mnt tmpfs"), std::string::npos);
  });
}

TEST_P(IsolateTest, MappedToItselfItHasNoCapabilities) {
  run_here([] {
    IsolateOptions options;
    options.map_to = MapTo::kSelf;
    const IsolateOutcome outcome = pyplaypen::run(
        [] { std::cout << std::ifstream("/proc/self/status").rdbuf(); }, options);
    EXPECT_NE(outcome.stdout_output.bytes.find("CapEff:\t0000000000000000"), std::string::npos);
  });
}

TEST_P(IsolateTest, TheHostNameIsSetInsideOnly) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    IsolateOptions options;
    options.hostname = "box";
    EXPECT_EQ(shell("cat /proc/sys/kernel/hostname", options), "box\n");
    options.namespaces = {};  // asks for uts by itself
    EXPECT_EQ(shell("cat /proc/sys/kernel/hostname", options), "box\n");
    options.hostname = std::string(65, 'x');
    EXPECT_THROW(run_argv({"true"}, options), Refused);
  });
}

TEST_P(IsolateTest, AFreshProcShowsItsOwnProcessesOnly) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    const std::string script = "for p in /proc/[0-9]*; do echo ${p#/proc/}; done; readlink /proc/self | grep -c .; echo $$";
    EXPECT_EQ(shell(script, {}), "1\n2\n1\n2\n");
    IsolateOptions required;
    required.namespaces = {};
    required.proc = ProcMount::kRequired;  // asks for pid and mount by itself
    EXPECT_EQ(shell(script, required), "1\n2\n1\n2\n");
    IsolateOptions never;
    never.proc = ProcMount::kNever;
    const std::string ours = std::to_string(::getpid());
    EXPECT_EQ(shell("[ -d /proc/" + ours + " ] && echo seen", never), "seen\n");
  });
}

TEST_P(IsolateTest, ThereIsNoNetworkAndItIsSaidAtOnce) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    const auto start = Clock::now();
    const IsolateOutcome outcome = pyplaypen::run([] {
      const sys::UniqueFd tcp(::socket(AF_INET, SOCK_STREAM, 0));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(53);
      ::inet_pton(AF_INET, "192.0.2.1", &address.sin_addr);
      if (::connect(tcp.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return 1;
      if (errno != ENETUNREACH) return 2;
      addrinfo* found = nullptr;
      if (::getaddrinfo("example.com", "80", nullptr, &found) == 0) return 3;
      // A server of its own is fine.
      const sys::UniqueFd server(::socket(AF_INET, SOCK_STREAM, 0));
      address.sin_port = 0;
      ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
      socklen_t size = sizeof address;
      if (::bind(server.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) return 4;
      ::listen(server.get(), 1);
      ::getsockname(server.get(), reinterpret_cast<sockaddr*>(&address), &size);
      const sys::UniqueFd client(::socket(AF_INET, SOCK_STREAM, 0));
      return ::connect(client.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 ? 0 : 5;
    });
    EXPECT_EQ(outcome.exit_status, 0) << outcome.message;
    EXPECT_LT(seconds_since(start), 2);  // a resolver that waits would take 5
  });
}

TEST_P(IsolateTest, ProbingTellsWhatIsThere) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    EXPECT_TRUE(userns_available());
    EXPECT_EQ(to_string(namespaces_supported()), to_string(kAllNamespaces));
  });
}

// ---- Refused ones. ----

unsigned flags_of(Namespaces set) { return static_cast<unsigned>(jail::clone_flags(set)); }

TEST_P(IsolateTest, ProbingTellsWhatIsRefused) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    in_own_process([] {
      ASSERT_TRUE(testing::deny_namespaces(flags_of({Namespace::kNet, Namespace::kUts})));
      EXPECT_TRUE(userns_available());
      EXPECT_EQ(to_string(namespaces_supported()), "user,mount,pid,ipc,cgroup");
    });
    in_own_process([] {
      ASSERT_TRUE(testing::deny_namespaces(flags_of({Namespace::kUser})));
      EXPECT_FALSE(userns_available());
      EXPECT_EQ(to_string(namespaces_supported()), ::geteuid() == 0 ? "mount,pid,net,ipc,uts,cgroup" : "none");
    });
  });
}

TEST_P(IsolateTest, ARefusedNamespaceIsSkippedWithANote) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    for (const Namespace one : kEach) {
      if (one == Namespace::kUser) continue;
      in_own_process([one] {
        ASSERT_TRUE(testing::deny_namespaces(flags_of({one})));
        IsolateOptions options = quiet(kAllNamespaces);
        std::string noted;
        options.note = [&](std::string_view sentence) { noted += sentence; };
        const IsolateOutcome outcome = pyplaypen::run([] {}, options);
        EXPECT_TRUE(outcome.ok) << outcome.message;
        EXPECT_EQ(to_string(outcome.namespaces), to_string(kAllNamespaces - Namespaces{one}));
        EXPECT_NE(noted.find("namespace " + std::string(namespace_name(one))), std::string::npos) << noted;
        // Without a mount namespace there is no /proc for the pid namespace either.
        EXPECT_EQ(outcome.notes.size(), one == Namespace::kMount ? 2u : 1u);
      });
    }
  });
}

TEST_P(IsolateTest, WithoutUserNamespacesAnOrdinaryUserHasNoneAtAll) {
  run_here([] {
    in_own_process([] {
      ASSERT_TRUE(testing::deny_namespaces(flags_of({Namespace::kUser})));
      const IsolateOutcome outcome = pyplaypen::run([] { std::cout << ::getuid(); }, quiet());
      EXPECT_TRUE(outcome.ok) << outcome.message;
      EXPECT_EQ(to_string(outcome.namespaces), ::geteuid() == 0 ? "mount,pid,net,ipc,uts" : "none");
      EXPECT_EQ(outcome.stdout_output.bytes, std::to_string(::getuid()));
    });
  });
}

TEST_P(IsolateTest, StrictRefusesInstead) {
  run_here([] {
    for (const Namespace one : kEach) {
      in_own_process([one] {
        ASSERT_TRUE(testing::deny_namespaces(flags_of({one})));
        try {
          pyplaypen::run([] {}, with(kAllNamespaces));
          ADD_FAILURE() << "not refused without " << namespace_name(one);
        } catch (const Refused& refused) {
          EXPECT_NE(std::string(refused.what()).find(namespace_name(one)), std::string::npos) << refused.what();
        }
      });
    }
  });
}

TEST_P(IsolateTest, ANoteGoesToStderrByDefault) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    in_own_process([] {
      ASSERT_TRUE(testing::deny_namespaces(flags_of({Namespace::kNet})));
      ::testing::internal::CaptureStderr();
      EXPECT_TRUE(pyplaypen::run([] {}).ok);
      const std::string text = ::testing::internal::GetCapturedStderr();
      EXPECT_EQ(text.find("pyplaypen: this system refuses the namespace net"), 0u) << text;
    });
  });
}

// ---- Landlock. ----

TEST_P(IsolateTest, ALandlockRulesetIsInForceInThePayloadOnlyAndStaysUsable) {
  if (landlock_abi() < 1) GTEST_SKIP() << "no Landlock";
  TempTree tree;
  ASSERT_EQ(::chmod(tree.path().c_str(), 0777), 0);
  run_here([&] {
    LandlockRuleset ruleset;
    ruleset.write_paths = {tree.path(), "/dev/null"};
    const LandlockRuleset before = ruleset;
    IsolateOptions options;
    options.landlock = ruleset;
    TempTree elsewhere;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(shell("echo a > " + tree.path() + "/a && cat " + tree.path() + "/a; rm " + tree.path() + "/a; "
                      "echo b 2>/dev/null > " + elsewhere.path() + "/b || echo barred", options), "a\nbarred\n");
      const auto write = [&] { std::ofstream(elsewhere.path() + "/b") << "b"; };
      EXPECT_TRUE(pyplaypen::run(write, options).ok);
      EXPECT_FALSE(std::ifstream(elsewhere.path() + "/b").good());
    }
    EXPECT_EQ(ruleset, before);
    std::ofstream(elsewhere.path() + "/ours") << "x";
    EXPECT_TRUE(std::ifstream(elsewhere.path() + "/ours").good()) << "the parent itself is not restricted";
  });
}

TEST(Isolate, ALandlockRulesetThatCannotBeHadIsRefused) {
  IsolateOptions options;
  options.landlock.emplace();
  options.landlock->write_paths = {"/no/such/path"};
  EXPECT_THROW(run([] {}, options), std::exception);
}

// ---- Limits. ----

TEST_P(IsolateTest, LimitsOfACallable) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer maps more than any limit";
#endif
  run_here([] {
    IsolateOptions options = quiet();
    options.limits.memory_bytes = 64 << 20;
    options.limits.open_files = 20;
    options.limits.file_bytes = 1000;
    const IsolateOutcome outcome = pyplaypen::run(
        [] {
          try {
            std::string(1 << 28, 'x').swap(*new std::string);
            return 1;
          } catch (const std::bad_alloc&) {
          }
          if (::fcntl(0, F_DUPFD, 20) >= 0) return 2;
          return 0;
        },
        options);
    EXPECT_EQ(outcome.exit_status, 0) << outcome.message;
    options.limits = {};
    options.limits.cpu_seconds = 1;
    const IsolateOutcome busy = pyplaypen::run(
        [] {
          for (std::atomic<int> i = 0;;) ++i;
        },
        options);
    EXPECT_EQ(busy.status, Status::kSignaled);
    EXPECT_EQ(busy.signal, SIGXCPU) << "it is not pid 1, which default actions spare";
    EXPECT_GT(busy.usage.cpu_ms, 500);
  });
}

TEST_P(IsolateTest, ProcessCountIsTheCallsAlone) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    if (::geteuid() == 0) GTEST_SKIP() << "the kernel exempts root";
    IsolateOptions options = quiet();
    options.limits.process_count = 4;
    const auto forks = [] {
      int count = 0;
      while (count < 10) {
        const pid_t pid = ::fork();
        if (pid < 0) break;
        if (pid == 0) {
          ::pause();
          ::_exit(0);
        }
        ++count;
      }
      return count;
    };
    EXPECT_EQ(pyplaypen::run(forks, options).exit_status, 3);  // and itself
    options.namespaces = {Namespace::kUser};
    EXPECT_EQ(pyplaypen::run(forks, options).exit_status, 3);
  });
}

// ---- The end of the tree. ----

const Namespaces kWithAndWithoutPid[] = {kDefaultNamespaces, kDefaultNamespaces - Namespaces{Namespace::kPid}, {}};

void leave_a_daemon() {
  if (::fork() != 0) return;
  ::setsid();
  if (::fork() != 0) ::_exit(0);
  ::signal(SIGTERM, SIG_IGN);
  for (;;) ::pause();
}

TEST_P(IsolateTest, WhatThePayloadLeavesRunningIsKilled) {
  run_here([] {
    for (const Namespaces namespaces : kWithAndWithoutPid) {
      Witness witness;
      const auto start = Clock::now();
      const IsolateOutcome outcome = pyplaypen::run(leave_a_daemon, quiet(namespaces));
      EXPECT_TRUE(outcome.ok) << outcome.message;
      EXPECT_TRUE(witness.all_gone()) << to_string(namespaces);
      EXPECT_LT(seconds_since(start), 5);
    }
  });
}

TEST_P(IsolateTest, TheTimeoutKillsTheWholeTree) {
  run_here([] {
    for (const Namespaces namespaces : kWithAndWithoutPid) {
      Witness witness;
      IsolateOptions options = quiet(namespaces);
      options.timeout_seconds = 0.2;
      const auto start = Clock::now();
      const IsolateOutcome outcome = pyplaypen::run(
          [] {
            std::cout << "partial" << std::flush;
            leave_a_daemon();
            for (;;) ::pause();
          },
          options);
      EXPECT_FALSE(outcome.ok);
      EXPECT_EQ(outcome.status, Status::kTimeout);
      EXPECT_EQ(outcome.stdout_output.bytes, "partial");
      EXPECT_TRUE(witness.all_gone()) << to_string(namespaces);
      EXPECT_GE(seconds_since(start), 0.2);
      EXPECT_LT(seconds_since(start), 5);
    }
  });
}

TEST_P(IsolateTest, ManyProcessesInSessionsOfTheirOwnAreKilled) {
  run_here([] {
    for (const Namespaces namespaces : kWithAndWithoutPid) {
      Witness witness;
      const IsolateOutcome outcome = pyplaypen::run(
          [] {
            for (int i = 0; i < 6; ++i)  // 64 of them
              if (::fork() == 0) ::setsid();
            for (;;) ::pause();
          },
          [&] {
            IsolateOptions options = quiet(namespaces);
            options.timeout_seconds = 0.3;
            return options;
          }());
      EXPECT_EQ(outcome.status, Status::kTimeout);
      EXPECT_TRUE(witness.all_gone());
    }
  });
}

TEST_P(IsolateTest, ADeadHostTakesTheTreeWithIt) {
  run_here([] {
    for (const Namespaces namespaces : kWithAndWithoutPid) {
      Witness witness;
      auto [ready_read, ready_write] = sys::pipe_pair();
      const pid_t host = ::fork();
      if (host == 0) {
        pyplaypen::run(
            [&] {
              leave_a_daemon();
              (void)!::write(ready_write.get(), "r", 1);
              for (;;) ::pause();
            },
            quiet(namespaces));
        ::_exit(1);
      }
      ready_write.reset();
      char byte = 0;
      ASSERT_EQ(::read(ready_read.get(), &byte, 1), 1);
      ::kill(host, SIGKILL);
      ::waitpid(host, nullptr, 0);
      witness.write_end.reset();
      ::alarm(20);
      EXPECT_EQ(::read(witness.read_end.get(), &byte, 1), 0) << "ends when the last of them is gone";
      ::alarm(0);
    }
  });
}

// ---- The code inside notices no pid namespace. ----

TEST_P(IsolateTest, SignalsActAsWithoutAPidNamespace) {
  run_here([] {
    for (const Namespaces namespaces : kWithAndWithoutPid) {
      for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGKILL, SIGABRT}) {
        const IsolateOutcome outcome = pyplaypen::run([number] { ::kill(::getpid(), number); }, quiet(namespaces));
        EXPECT_EQ(outcome.status, Status::kSignaled) << to_string(namespaces);
        EXPECT_EQ(outcome.signal, number);
      }
    }
  });
}

TEST_P(IsolateTest, OrphansAreReapedWhileItRuns) {
  run_here([] {
    for (const Namespaces namespaces : kWithAndWithoutPid) {
      const IsolateOutcome outcome = pyplaypen::run(
          [] {
            auto [read_end, write_end] = sys::pipe_pair();
            const pid_t middle = ::fork();
            if (middle == 0) {
              const pid_t parent = ::getpid();
              const pid_t orphan = ::fork();
              if (orphan == 0) {
                while (::getppid() == parent) {
                }
                ::_exit(0);
              }
              (void)!::write(write_end.get(), &orphan, sizeof orphan);
              ::_exit(0);
            }
            ::waitpid(middle, nullptr, 0);
            pid_t orphan = 0;
            (void)!::read(read_end.get(), &orphan, sizeof orphan);
            while (::kill(orphan, 0) == 0) ::usleep(1000);  // a zombie would stay
            return errno == ESRCH ? 0 : 1;
          },
          [&] {
            IsolateOptions options = quiet(namespaces);
            options.timeout_seconds = 20;
            return options;
          }());
      EXPECT_TRUE(outcome.ok) << to_string(namespaces);
    }
  });
}

TEST_P(IsolateTest, ItCannotEndTheProcessThatMindsIt) {
  run_here([] {
    const bool scoped = landlock_abi() >= 6;
    for (const Namespaces namespaces : kWithAndWithoutPid) {
      if (!namespaces.contains(Namespace::kPid) && !scoped) continue;
      const IsolateOutcome outcome = pyplaypen::run(
          [] {
            ::kill(::getppid(), SIGKILL);
            ::kill(::getppid(), SIGSTOP);
            return 7;
          },
          quiet(namespaces));
      EXPECT_EQ(outcome.exit_status, 7) << outcome.message;
    }
  });
}

// ---- Streams and the callable's surroundings. ----

TEST(Isolate, OutputIsBytesAndBounded) {
  IsolateOptions options;
  options.stdout_bytes = 100;
  const IsolateOutcome outcome = run_argv({"/bin/sh", "-c", "printf 'a\\0\\377'; head -c 1000000 /dev/zero >&2"}, options);
  EXPECT_EQ(outcome.stdout_output.bytes, std::string("a\0\377", 3));
  EXPECT_EQ(outcome.stderr_output.bytes.size(), 1000000u);
  const IsolateOutcome flood = run_argv({"/bin/sh", "-c", "head -c 10000000 /dev/zero"}, options);
  EXPECT_TRUE(flood.ok);
  EXPECT_TRUE(flood.stdout_output.truncated);
  EXPECT_EQ(flood.stdout_output.total_bytes, 10000000u);
  EXPECT_LT(flood.stdout_output.bytes.size(), 200u);
}

TEST(Isolate, WhatTheHostHasNotFlushedIsWrittenOnce) {
  in_own_process([] {
    Witness pipe;
    ASSERT_EQ(::dup2(pipe.write_end.get(), 1), 1);
    std::printf("ours ");
    std::cout << "too ";
    EXPECT_EQ(run([] { std::printf("theirs"); }).stdout_output.bytes, "theirs");
    std::fflush(nullptr);
    ::close(1);
    pipe.write_end.reset();
    char text[64] = {};
    EXPECT_GT(::read(pipe.read_end.get(), text, sizeof text), 0);
    EXPECT_STREQ(text, "ours too ");
  });
}

TEST(Isolate, StandardInputIsEmptyAndDescriptorsAreInherited) {
  auto [read_end, write_end] = sys::pipe_pair();
  const int fd = write_end.get();
  const IsolateOutcome outcome = run([fd] {
    char byte = 0;
    if (::read(0, &byte, 1) != 0) return 1;
    return ::write(fd, "x", 1) == 1 ? 0 : 2;
  });
  EXPECT_EQ(outcome.exit_status, 0);
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 1);
}

TEST(Isolate, AProgramInheritsNoDescriptor) {
  const sys::UniqueFd leaked(::open("/dev/null", O_RDONLY));
  EXPECT_EQ(shell("ls /proc/$$/fd; true", {}), "0\n1\n2\n");
}

TEST(Isolate, TheEnvironmentAndDirectoryAreTheOnesGiven) {
  IsolateOptions options;
  options.environment = Environment{{"NAME", "value"}, {"PATH", "/usr/bin:/bin"}};
  options.cwd = "/usr";
  const IsolateOutcome outcome = run_argv({"sh", "-c", "echo $NAME; pwd"}, options);
  EXPECT_EQ(outcome.stdout_output.bytes, "value\n/usr\n");
}

TEST(Isolate, AProgramThatCannotBeStartedIsTold) {
  const IsolateOutcome outcome = run_argv({"/no/such/program"});
  EXPECT_FALSE(outcome.ok);
  EXPECT_EQ(outcome.status, Status::kFailed);
  EXPECT_EQ(outcome.error_number, ENOENT);
  EXPECT_NE(outcome.message, "");
}

// Recursion guards, garbage collectors and the like ask for the bounds of the stack that they are on.
TEST(Isolate, ACallableRunsOnItsThreadsStack) {
  const auto here = [] {
    pthread_attr_t attributes;
    void* base = nullptr;
    size_t size = 0;
    if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return 1;
    ::pthread_attr_getstack(&attributes, &base, &size);
    ::pthread_attr_destroy(&attributes);
    const char* const low = static_cast<char*>(base);
    const char* const local = static_cast<char*>(__builtin_frame_address(0));
    return local >= low && local < low + size ? 0 : 2;
  };
  EXPECT_EQ(run(here).exit_status, 0);
  std::thread([&] { EXPECT_EQ(run(here).exit_status, 0); }).join();
}

TEST(Isolate, ACallableMayCallExit) {
  EXPECT_EQ(run([] { std::exit(9); }).exit_status, 9);
  EXPECT_EQ(run([] { return 7; }).exit_status, 7);
  EXPECT_EQ(run([] { ::abort(); }).signal, SIGABRT);
}

// ---- The host afterwards. ----

volatile sig_atomic_t children_signals = 0;

TEST_P(IsolateTest, TheHostIsUnchanged) {
  if (!userns_available()) GTEST_SKIP() << kNoUserNamespaces;
  run_here([] {
    in_own_process([] {
      struct sigaction counting {};
      counting.sa_handler = [](int) { children_signals = children_signals + 1; };
      ASSERT_EQ(::sigaction(SIGCHLD, &counting, nullptr), 0);
      const std::vector<int> fds = sys::open_fds();
      const int threads = sys::thread_count();
      sigset_t mask_before{};  // the kernel writes its own eight bytes only
      ::sigprocmask(SIG_SETMASK, nullptr, &mask_before);
      errno = 0;
      const int dumpable = ::prctl(PR_GET_DUMPABLE);
      const int no_new_privs = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
      for (const Namespaces namespaces : kWithAndWithoutPid) {
        pyplaypen::run([] { leave_a_daemon(); }, quiet(namespaces));
        run_argv({"true"}, quiet(namespaces));
        run_argv({"/no/such/program"}, quiet(namespaces));
      }
      (void)namespaces_supported();
      (void)userns_available();
      EXPECT_EQ(children_signals, 0);
      EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG | __WALL), -1);
      EXPECT_EQ(errno, ECHILD);
      int subreaper = -1;
      ::prctl(PR_GET_CHILD_SUBREAPER, &subreaper, 0, 0, 0);
      EXPECT_EQ(subreaper, 0);
      EXPECT_EQ(::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), no_new_privs);
      EXPECT_EQ(::prctl(PR_GET_DUMPABLE), dumpable);
      EXPECT_EQ(sys::open_fds(), fds);
      EXPECT_EQ(sys::thread_count(), threads);
      sigset_t mask{};
      ::sigprocmask(SIG_SETMASK, nullptr, &mask);
      EXPECT_EQ(std::memcmp(&mask, &mask_before, sizeof mask), 0);
      struct sigaction now {};
      ::sigaction(SIGCHLD, nullptr, &now);
      EXPECT_EQ(now.sa_handler, counting.sa_handler);
    });
  });
}

TEST(Isolate, AHostThatIgnoresItsChildrenLearnsHowTheseEnd) {
  in_own_process([] {
    ::signal(SIGCHLD, SIG_IGN);
    EXPECT_EQ(run([] { return 5; }).exit_status, 5);
  });
}

// Locks that other threads hold at the fork must not be held for ever in the copy.
TEST(Isolate, OtherThreadsMayBeInTheMiddleOfAnything) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!stop) {
        std::vector<std::string> filler(50, std::string(1000, 'x'));
        std::fprintf(stderr, "%s", "");
        std::this_thread::yield();
      }
    });
  for (int i = 0; i < 30; ++i) {
    IsolateOptions options;
    options.timeout_seconds = 30;
    const IsolateOutcome outcome = run(
        [] {
          std::vector<std::string> filler(1000, std::string(2000, 'y'));
          std::cout << filler.back().size();
        },
        options);
    ASSERT_TRUE(outcome.ok) << outcome.message;
    ASSERT_EQ(outcome.stdout_output.bytes, "2000");
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Isolate, ManyThreadsMayIsolateAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&good, i] {
      for (int k = 0; k < 10; ++k) {
        IsolateOptions options = quiet(i % 2 == 0 ? kDefaultNamespaces : Namespaces{});
        options.timeout_seconds = 30;
        const std::string text = std::to_string(i * 100 + k);
        const IsolateOutcome called = run([&] { std::cout << text; }, options);
        const IsolateOutcome ran = run_argv({"/bin/echo", text}, options);
        if (called.stdout_output.bytes == text && ran.stdout_output.bytes == text + "\n") ++good;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 60);
}

}  // namespace
}  // namespace pyplaypen
