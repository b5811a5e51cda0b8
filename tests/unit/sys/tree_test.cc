#include "runtime/sys/tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <vector>

#include "runtime/sys/channel.h"
#include "runtime/sys/proc.h"
#include "tests/unit/own_process.h"

namespace pyplaypen::sys {
namespace {

// A process that waits for its end.
pid_t start(const std::function<void()>& first = {}) {
  auto [read_end, write_end] = pipe_pair();
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (first) first();
    (void)!::write(write_end.get(), "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 1);
  return pid;
}

// As many processes as there may be, each of which makes another as soon as it can.
void be_a_bomb() {
  if (::fork() != 0) return;
  for (std::array<pid_t, 16> children{};;)
    for (pid_t& child : children) {
      if (child != 0 && ::waitpid(child, nullptr, WNOHANG) == 0) continue;
      child = ::fork();
      if (child == 0) {
        ::setsid();
        ::usleep(2000);
        ::_exit(0);
      }
    }
}

TEST(EndOthers, SparesWhatIsNamedAndWhatDescendsFromIt) {
  testing::in_own_process([] {
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    const pid_t kept = start([] { start(); });
    ASSERT_EQ(children_of(kept).size(), 1U);
    const pid_t its_child = children_of(kept).front();
    start([] { ::signal(SIGTERM, SIG_IGN); });
    start([] { start([] { ::setsid(); }); });
    const pid_t stopped = start();
    ::kill(stopped, SIGSTOP);
    end_others(std::vector{kept});
    EXPECT_EQ(children(), std::vector{kept});
    EXPECT_EQ(::kill(its_child, 0), 0);
    end_others({});
    EXPECT_TRUE(children().empty());
  });
}

TEST(EndOthers, EndsWhatForksAndEndsMeanwhile) {
  testing::in_own_process([] {
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    for (int i = 0; i < 20; ++i) {
      for (int bomb = 0; bomb < 3; ++bomb) start(be_a_bomb);
      end_others({});
      ASSERT_TRUE(children().empty()) << i;
    }
  });
}

}  // namespace
}  // namespace pyplaypen::sys
