#include "runtime/jail/descendants.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "pyplaypen/landlock.h"
#include "runtime/sys/channel.h"
#include "tests/unit/ordinary_user.h"
#include "tests/unit/own_process.h"
#include "tests/unit/read_more.h"

namespace pyplaypen::jail {
namespace {

using testing::Who;

// Who runs it, and which way is open.
class Teardown : public ::testing::TestWithParam<std::tuple<Who, Reach>> {
 protected:
  // In a process of its own that has Descendants; `body` starts some, which hold `witness` open.
  template <typename Body>
  void run(Body body) {
    const auto [who, reach] = GetParam();
    if (reach == Reach::kScope && landlock_abi() < 6) GTEST_SKIP() << "needs Landlock ABI 6";
    const int abi = reach == Reach::kScope ? landlock_abi() : 5;
    const auto whole = [&] {
      testing::in_own_process([&] {
        const Descendants descendants(abi, false);
        ASSERT_EQ(descendants.reach(), std::get<1>(GetParam()));
        auto [source, witness] = sys::pipe_pair();
        body(witness.get());
        descendants.kill_all();
        EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
        EXPECT_EQ(errno, ECHILD);
        witness.reset();
        // Its end: nobody is left who holds the other side.
        sys::set_nonblocking(source.get());
        std::string rest;
        EXPECT_EQ(testing::read_rest(source.get(), rest), sys::Received::kEnd);
      });
    };
    if (who == Who::kSelf) return whole();
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
    testing::run_as(testing::kOrdinaryUser, whole);
  }
};

std::string teardown_name(const ::testing::TestParamInfo<std::tuple<Who, Reach>>& info) {
  const auto [who, reach] = info.param;
  return std::string(who == Who::kSelf ? "AsSelf" : "AsOrdinaryUser") +
         (reach == Reach::kScope ? "ByScope" : "ByWalk");
}

INSTANTIATE_TEST_SUITE_P(, Teardown,
                         ::testing::Combine(::testing::Values(Who::kSelf, Who::kOrdinary),
                                            ::testing::Values(Reach::kScope, Reach::kWalk)),
                         teardown_name);

[[noreturn]] void sleep_on() {
  while (true) ::pause();
}

void tell(int witness) { (void)!::write(witness, "x", 1); }

// Starts a child that does `work`, and waits until it has written to its pipe or ended.
template <typename Work>
void start(Work work) {
  auto [source, sink] = sys::pipe_pair();
  if (::fork() == 0) {
    source.reset();
    work(sink.get());
    ::_exit(0);
  }
  sink.reset();
  std::string byte;
  testing::read_more(source.get(), byte, 1);
}

TEST_P(Teardown, NothingToDo) {
  run([](int) {});
}

TEST_P(Teardown, ADaemonInItsOwnSession) {
  run([](int) {
    start([](int ready) {
      ::setsid();
      if (::fork() != 0) return;
      tell(ready);
      sleep_on();
    });
  });
}

TEST_P(Teardown, AnIgnorerOfSignals) {
  run([](int) {
    start([](int ready) {
      for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_IGN);
      tell(ready);
      sleep_on();
    });
  });
}

TEST_P(Teardown, AStoppedProcess) {
  run([](int) {
    if (const pid_t child = ::fork(); child == 0) {
      ::raise(SIGSTOP);
      ::_exit(0);
    } else {
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
      ASSERT_TRUE(WIFSTOPPED(status));
    }
  });
}

TEST_P(Teardown, ADeepTreeWhoseMiddleIsGone) {
  run([](int) {
    start([](int ready) {
      for (int level = 0; level < 20; ++level)
        if (::fork() != 0) {
          if (level % 2 == 0) ::_exit(0);
          sleep_on();
        }
      tell(ready);
      sleep_on();
    });
  });
}

TEST_P(Teardown, ASubreaperOfItsOwn) {
  run([](int) {
    start([](int ready) {
      ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
      if (::fork() == 0) {
        if (::fork() == 0) sleep_on();
        ::_exit(0);
      }
      tell(ready);
      sleep_on();
    });
  });
}

// Processes that fork for as long as they live; bounded by their own count, since the limit on
// processes does not hold for root.
TEST_P(Teardown, AForkBomb) {
  run([](int) {
    constexpr int kMost = 150;
    auto [source, sink] = sys::pipe_pair();
    if (::fork() == 0) {
      // A byte a fork; the pool of bytes is what bounds them all together.
      auto [pool, fill] = sys::pipe_pair();
      const std::string bytes(kMost, 'x');
      (void)!::write(fill.get(), bytes.data(), bytes.size());
      fill.reset();
      char byte = 0;
      while (::read(pool.get(), &byte, 1) == 1) {
        (void)::fork();
        tell(sink.get());
      }
      sleep_on();
    }
    sink.reset();
    // In the middle of it.
    std::string some;
    while (some.size() < 20) testing::read_more(source.get(), some, 1);
  });
}

TEST_P(Teardown, ChildrenFromBeforeAreNotTouched) {
  const auto [who, reach] = GetParam();
  if (reach == Reach::kScope && landlock_abi() < 6) GTEST_SKIP() << "needs Landlock ABI 6";
  const auto whole = [reach = reach] {
    testing::in_own_process([&] {
      // It ends at the end of this pipe: a signal, PR_SET_PDEATHSIG's too, would come from a scope that
      // it is not in.
      auto [source, sink] = sys::pipe_pair();
      const pid_t foreign = ::fork();
      if (foreign == 0) {
        sink.reset();
        std::string nothing;
        testing::read_more(source.get(), nothing);
        ::_exit(0);
      }
      const Descendants descendants(reach == Reach::kScope ? landlock_abi() : 5, false);
      const pid_t own = ::fork();
      if (own == 0) {
        sink.reset();
        sleep_on();
      }
      descendants.kill_all();
      EXPECT_EQ(::waitpid(own, nullptr, WNOHANG), -1) << "reaped";
      EXPECT_EQ(::waitpid(foreign, nullptr, WNOHANG), 0) << "running";
    });
  };
  if (who == Who::kSelf) return whole();
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  testing::run_as(testing::kOrdinaryUser, whole);
}

TEST(Descendants, AScopedProcessReachesNobodyElse) {
  if (landlock_abi() < 6) GTEST_SKIP() << "needs Landlock ABI 6";
  testing::in_own_process([] {
    const pid_t bystander = ::fork();
    if (bystander == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
      sleep_on();
    }
    testing::in_own_process([] { Descendants(landlock_abi(), false).kill_all(); });
    EXPECT_EQ(::waitpid(bystander, nullptr, WNOHANG), 0);
    ::kill(bystander, SIGKILL);
    ::waitpid(bystander, nullptr, 0);
  });
}

}  // namespace
}  // namespace pyplaypen::jail
