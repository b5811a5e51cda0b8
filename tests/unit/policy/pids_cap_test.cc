#include "runtime/policy/pids_cap.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/temp_tree.h"

namespace pyplaypen::policy {
namespace {

using testing::TempTree;

// A made-up root with a /proc/self that says what a container's would.
class PidsCap : public ::testing::Test {
 protected:
  PidsCap() {
    for (const char* const name : {"proc", "proc/self", "sys", "sys/fs", "sys/fs/cgroup"})
      tree_.directory(name);
  }
  void groups(const std::string& text) { tree_.file("proc/self/cgroup", text); }
  void mounts(const std::string& text) { tree_.file("proc/self/mountinfo", text); }
  void cap(const std::string& directory, const std::string& text) {
    tree_.file("sys/fs/cgroup" + directory + "/pids.max", text);
  }
  std::optional<uint64_t> find() { return pids_cap(tree_.path()); }

  TempTree tree_;
};

constexpr char kUnified[] = "30 25 0:26 / /sys/fs/cgroup ro,nosuid shared:4 - cgroup2 cgroup rw,nsdelegate\n";

TEST_F(PidsCap, NoneWithoutProc) { EXPECT_EQ(pids_cap("/no/such/root"), std::nullopt); }

TEST_F(PidsCap, NoneWhereItIsMax) {
  groups("0::/\n");
  mounts(kUnified);
  cap("", "max\n");
  EXPECT_EQ(find(), std::nullopt);
}

TEST_F(PidsCap, OfAContainerWithItsOwnNamespace) {
  groups("0::/\n");
  mounts(kUnified);
  cap("", "64\n");
  EXPECT_EQ(find(), 64U);
}

TEST_F(PidsCap, TheLowestOnTheWayUp) {
  tree_.directory("sys/fs/cgroup/slice");
  tree_.directory("sys/fs/cgroup/slice/service");
  groups("0::/slice/service\n");
  mounts(kUnified);
  cap("/slice", "100\n");
  cap("/slice/service", "500\n");
  EXPECT_EQ(find(), 100U);
}

TEST_F(PidsCap, OfVersionOneWhereItsPartIsMounted) {
  tree_.directory("sys/fs/cgroup/pids");
  groups("8:pids:/docker/abc\n7:blkio:/\n");
  mounts("31 25 0:27 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n");
  cap("/pids", "32\n");
  EXPECT_EQ(find(), 32U);
}

TEST_F(PidsCap, SurvivesNonsense) {
  groups("::\nx\n0:\n::::\n");
  mounts("a b\n- - - -\n\n30 25 0:26 / /sys/fs/cgroup ro - cgroup2\n");
  EXPECT_EQ(find(), std::nullopt);
}

}  // namespace
}  // namespace pyplaypen::policy
