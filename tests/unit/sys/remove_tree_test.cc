#include "runtime/sys/remove_tree.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <string>

#include "runtime/sys/proc.h"
#include "tests/unit/ordinary_user.h"
#include "tests/unit/temp_tree.h"

namespace pyplaypen::sys {
namespace {

using testing::TempTree;
using testing::Who;

class RemoveTreeTest : public testing::AsWho {};

INSTANTIATE_TEST_SUITE_P(, RemoveTreeTest, ::testing::Values(Who::kSelf, Who::kOrdinary),
                         testing::who_name);

TEST_P(RemoveTreeTest, RemovesWhatIsThere) {
  run([] {
    const TempTree top;
    top.directory("tree");
    top.directory("tree/sub");
    top.file("tree/sub/file", "x");
    top.file("tree/.dot", "x");
    top.fifo("tree/fifo");
    EXPECT_TRUE(remove_tree(top.fd(), "tree"));
    EXPECT_FALSE(top.exists("tree"));
    EXPECT_TRUE(remove_tree(top.fd(), "tree")) << "not there counts as removed";
    top.file("tree", "x");
    EXPECT_TRUE(remove_tree(top.fd(), "tree")) << "a file, too";
    EXPECT_FALSE(top.exists("tree"));
  });
}

TEST_P(RemoveTreeTest, FollowsNoLink) {
  run([] {
    const TempTree precious;
    precious.file("file", "x");
    precious.directory("sub");
    precious.file("sub/file", "x");
    const TempTree top;
    top.directory("tree");
    top.link(precious.path(), "tree/link");
    top.link(precious.at("file"), "tree/file");
    top.link("..", "tree/up");
    top.link("tree", "tree/loop");
    top.hard_link(precious.at("file"), "tree/hard");
    EXPECT_TRUE(remove_tree(top.fd(), "tree"));
    top.link(precious.path(), "tree");
    EXPECT_TRUE(remove_tree(top.fd(), "tree"));
    EXPECT_FALSE(top.exists("tree"));
    EXPECT_TRUE(precious.exists("file"));
    EXPECT_TRUE(precious.exists("sub/file"));
  });
}

TEST_P(RemoveTreeTest, OpensUpModesThatBarItsOwnUser) {
  run([] {
    const TempTree top;
    top.directory("tree");
    top.directory("tree/a");
    top.directory("tree/a/b");
    top.directory("tree/a/b/c");
    top.file("tree/a/b/c/file", "x", 0000);
    for (const char* name : {"tree/a/b/c", "tree/a/b", "tree/a", "tree"})
      check(::chmod(top.at(name).c_str(), 0000), "chmod", name);
    EXPECT_TRUE(remove_tree(top.fd(), "tree"));
    EXPECT_FALSE(top.exists("tree"));
  });
}

TEST_P(RemoveTreeTest, ThreeThousandLevelsNeedFewDescriptors) {
  run([] {
    const TempTree top(testing::fast_directory());
    top.deep(3000, true);
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit few{static_cast<rlim_t>(open_fds().back() + 5), before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    EXPECT_TRUE(empty_directory(top.fd()));
    ::setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_FALSE(top.exists("d"));
  });
}

TEST_P(RemoveTreeTest, ManyFilesAndDirectories) {
  run([] {
    const TempTree top(testing::fast_directory());
    top.many_files(10'000, "f");
    for (int i = 0; i < 500; ++i) {
      top.directory("d" + std::to_string(i));
      top.file("d" + std::to_string(i) + "/x");
      top.directory("d" + std::to_string(i) + "/sub");
      top.file("d" + std::to_string(i) + "/sub/y");
    }
    EXPECT_TRUE(empty_directory(top.fd()));
    EXPECT_EQ(testing::status_of(top.path()).st_nlink, 2U);
  });
}

TEST_P(RemoveTreeTest, NamesOfItsOwnKindAreNoObstacle) {
  run([] {
    const TempTree top;
    for (int i = 0; i < 3; ++i) {
      top.directory(".pyplaypen-" + std::to_string(i));
      top.directory(".pyplaypen-" + std::to_string(i) + "/.pyplaypen-0");
      top.file(".pyplaypen-" + std::to_string(i) + "/.pyplaypen-0/x");
    }
    EXPECT_TRUE(empty_directory(top.fd()));
  });
}

TEST_P(RemoveTreeTest, APauseStopsIt) {
  run([] {
    const TempTree top(testing::fast_directory());
    top.many_files(2000, "f");
    int asked = 0;
    EXPECT_FALSE(empty_directory(top.fd(), [&] { return ++asked == 2; }));
    EXPECT_EQ(asked, 2);
    EXPECT_TRUE(empty_directory(top.fd(), [] { return false; }));
  });
}

TEST_P(RemoveTreeTest, LeavesNoDescriptorOpen) {
  run([] {
    const TempTree top;
    top.deep(10, true);
    const std::vector<int> before = open_fds();
    EXPECT_TRUE(empty_directory(top.fd()));
    EXPECT_EQ(open_fds(), before);
  });
}

TEST(RemoveTreeAsRoot, AMountPointIsSaidToBeLeft) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to mount";
  const TempTree top;
  top.directory("tree");
  top.directory("tree/mounted");
  top.file("tree/file", "x");
  if (::mount("none", top.at("tree/mounted").c_str(), "tmpfs", 0, nullptr) != 0)
    GTEST_SKIP() << "needs CAP_SYS_ADMIN, to mount";
  EXPECT_FALSE(remove_tree(top.fd(), "tree"));
  EXPECT_FALSE(top.exists("tree/file"));
  ::umount(top.at("tree/mounted").c_str());
  EXPECT_TRUE(remove_tree(top.fd(), "tree"));
}

TEST(RemoveTreeAsRoot, AnotherUsersFilesInOurTree) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give files away";
  const TempTree top;
  top.directory("tree", 0700);
  top.directory("tree/theirs", 0000);
  check(::chown(top.at("tree/theirs").c_str(), testing::kOrdinaryUser, testing::kOrdinaryUser),
        "chown");
  EXPECT_TRUE(remove_tree(top.fd(), "tree"));
}

TEST(RemoveTreeAsOrdinaryUser, SaysWhenSomethingStays) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give files away";
  const TempTree top;
  check(::chmod(top.path().c_str(), 0777), "chmod");
  top.directory("tree");
  top.file("tree/roots", "x");
  testing::run_as(testing::kOrdinaryUser, [&] { EXPECT_FALSE(remove_tree(top.fd(), "tree")); });
  EXPECT_TRUE(top.exists("tree/roots"));
}

}  // namespace
}  // namespace pyplaypen::sys
