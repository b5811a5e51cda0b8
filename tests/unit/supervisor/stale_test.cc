#include "supervisor/stale.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/sys/channel.h"
#include "tests/unit/ordinary_user.h"
#include "tests/unit/temp_tree.h"

namespace pyplaypen::supervisor {
namespace {

using testing::status_of;
using testing::TempTree;
using testing::Who;

class StaleTest : public testing::AsWho {};

INSTANTIATE_TEST_SUITE_P(, StaleTest, ::testing::Values(Who::kSelf, Who::kOrdinary),
                         testing::who_name);

constexpr char kLikeABase[] = "pyplaypen-1-0123456789abcdef";

bool is_there(const std::string& path) {
  struct stat status;
  return ::lstat(path.c_str(), &status) == 0;
}

TEST_P(StaleTest, ABaseDirectoryGoesWithItsObject) {
  run([] {
    const TempTree temp;
    std::string path;
    {
      const BaseDirectory base(temp.path());
      path = base.path();
      EXPECT_TRUE(path.starts_with(temp.at("pyplaypen-" + std::to_string(::getpid()) + "-")));
      EXPECT_EQ(status_of(path).st_mode & 07777, 0711U);
      sys::check(::mkdirat(base.fd(), "workspace", 0000), "mkdirat");
    }
    EXPECT_FALSE(is_there(path));
  });
}

TEST_P(StaleTest, ModeIsItsOwnWhateverTheUmask) {
  run([] {
    const TempTree temp;
    const mode_t before = ::umask(077);
    const BaseDirectory base(temp.path());
    ::umask(before);
    EXPECT_EQ(status_of(base.path()).st_mode & 07777, 0711U);
  });
}

TEST_P(StaleTest, ALiveOneIsLeftAlone) {
  run([] {
    const TempTree temp;
    const BaseDirectory base(temp.path());
    EXPECT_EQ(sweep(temp.path()), 0);
    EXPECT_TRUE(is_there(base.path()));
  });
}

TEST_P(StaleTest, ACopyOfTheDescriptorKeepsIt) {
  run([] {
    const TempTree temp;
    auto base = std::make_unique<BaseDirectory>(temp.path());
    const sys::UniqueFd copy(::dup(base->fd()));
    // As when the host dies and its zygote lives on: no destructor runs, the descriptor goes.
    const pid_t child = ::fork();
    if (child == 0) ::_exit(sweep(temp.path()));
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(is_there(base->path()));
  });
}

TEST_P(StaleTest, WhatAKilledSupervisorLeftIsSwept) {
  run([] {
    const TempTree temp;
    auto [ready, tell] = sys::pipe_pair();
    const pid_t child = ::fork();
    if (child == 0) {
      const BaseDirectory base(temp.path());
      const std::string inside = base.path() + "/workspace";
      ::mkdir(inside.c_str(), 0755);
      ::mkdir((inside + "/sub").c_str(), 0000);
      (void)!::write(tell.get(), base.path().data(), base.path().size());
      for (;;) ::pause();
    }
    char path[4096] = {};
    ASSERT_GT(::read(ready.get(), path, sizeof path - 1), 0);
    EXPECT_EQ(sweep(temp.path()), 0) << "its maker is alive";
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(is_there(path));
    EXPECT_EQ(sweep(temp.path()), 1);
    EXPECT_FALSE(is_there(path));
  });
}

TEST_P(StaleTest, AForkedCopyRemovesNothing) {
  run([] {
    const TempTree temp;
    std::optional<BaseDirectory> base(std::in_place, temp.path());
    const pid_t child = ::fork();
    if (child == 0) {
      base.reset();
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(is_there(base->path()));
  });
}

TEST_P(StaleTest, OtherNamesAndKindsAreLeftAlone) {
  run([] {
    const TempTree temp;
    const TempTree elsewhere;
    elsewhere.file("precious", "x");
    const std::vector<std::string> names = {"pyplaypen-artifacts-id",
                                            "pyplaypen-artifacts-0123456789abcdef",
                                            "pyplaypen-1-short",
                                            "pyplaypen--0123456789abcdef",
                                            "pyplaypen-1-0123456789ABCDEF",
                                            "pyplaypen-1-0123456789abcdef-more",
                                            "xpyplaypen-1-0123456789abcdef"};
    for (const std::string& name : names) temp.directory(name);
    temp.link(elsewhere.path(), "pyplaypen-2-0123456789abcdef");
    temp.file("pyplaypen-3-0123456789abcdef", "x");
    temp.fifo("pyplaypen-4-0123456789abcdef");
    EXPECT_EQ(sweep(temp.path()), 0);
    for (const std::string& name : names) EXPECT_TRUE(temp.exists(name)) << name;
    EXPECT_TRUE(temp.exists("pyplaypen-2-0123456789abcdef"));
    EXPECT_TRUE(temp.exists("pyplaypen-3-0123456789abcdef"));
    EXPECT_TRUE(elsewhere.exists("precious"));
  });
}

TEST_P(StaleTest, APauseStopsTheWorkForAnotherTime) {
  run([] {
    const TempTree temp;
    temp.directory(kLikeABase);
    temp.many_files(2, std::string(kLikeABase) + "/f");
    for (int i = 0; i < 1000; ++i) temp.file(std::string(kLikeABase) + "/g" + std::to_string(i));
    EXPECT_EQ(sweep(temp.path(), [] { return true; }), 0);
    EXPECT_TRUE(temp.exists(kLikeABase));
    EXPECT_EQ(sweep(temp.path()), 1);
    EXPECT_FALSE(temp.exists(kLikeABase));
  });
}

TEST(StaleAsRoot, AnotherUsersDirectoryIsLeftAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to make a file of another user";
  const TempTree temp;
  temp.directory(kLikeABase);
  sys::check(::chown(temp.at(kLikeABase).c_str(), testing::kOrdinaryUser, testing::kOrdinaryUser),
             "chown");
  EXPECT_EQ(sweep(temp.path()), 0);
  EXPECT_TRUE(temp.exists(kLikeABase));
}

TEST(Stale, NoTempDirectoryIsNothingToSweep) { EXPECT_EQ(sweep("/nonexistent/temp"), 0); }

TEST(Stale, TempDirectoryComesFromTheEnvironment) {
  const char* const before = ::getenv("TMPDIR");
  const std::string saved = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/dev", 1);
  EXPECT_EQ(temp_directory(), "/dev");
  ::setenv("TMPDIR", "/nonexistent", 1);
  EXPECT_EQ(temp_directory(), "/tmp");
  ::unsetenv("TMPDIR");
  EXPECT_EQ(temp_directory(), "/tmp");
  if (before != nullptr) ::setenv("TMPDIR", saved.c_str(), 1);
}

}  // namespace
}  // namespace pyplaypen::supervisor
