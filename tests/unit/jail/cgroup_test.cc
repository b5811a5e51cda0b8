#include "runtime/jail/cgroup.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"
#include "tests/unit/cgroups.h"
#include "tests/unit/temp_tree.h"

namespace pyplaypen::jail {
namespace {

using testing::TempTree;

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// ---- The files of each version, imitated. ----

TEST(Cgroup, VersionTwosFiles) {
  TempTree tree;
  for (const char* name : {"cgroup.procs", "pids.max", "memory.max", "memory.swap.max"}) tree.file(name, "");
  tree.file("memory.events", "low 0\nhigh 0\nmax 71\noom 5\noom_kill 3\noom_group_kill 0\n");
  Cgroup group({tree.path()});
  EXPECT_TRUE(group.limits_memory());
  EXPECT_TRUE(group.limits_processes());
  EXPECT_EQ(text_of(tree.at("memory.swap.max")), "0");
  group.limit(123'456'789, 17);
  EXPECT_EQ(text_of(tree.at("memory.max")), "123456789");
  EXPECT_EQ(text_of(tree.at("pids.max")), "17");
  EXPECT_EQ(group.memory_kills(), 3U);
  ASSERT_EQ(group.entrances().size(), 1U);
  EXPECT_EQ(enter_cgroup(group.entrances()[0]), 0);
  EXPECT_EQ(text_of(tree.at("cgroup.procs")), "0");
}

TEST(Cgroup, VersionOnesFilesAreInAHierarchyEach) {
  TempTree tree;
  tree.directory("memory");
  tree.directory("pids");
  for (const char* name : {"memory/cgroup.procs", "memory/memory.limit_in_bytes", "memory/memory.swappiness",
                           "pids/cgroup.procs", "pids/pids.max"})
    tree.file(name, "");
  tree.file("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 12\n");
  Cgroup group({tree.at("memory"), tree.at("pids")});
  EXPECT_TRUE(group.limits_memory());
  EXPECT_TRUE(group.limits_processes());
  group.limit(1000, 2);
  EXPECT_EQ(text_of(tree.at("memory/memory.limit_in_bytes")), "1000");
  EXPECT_EQ(text_of(tree.at("pids/pids.max")), "2");
  EXPECT_EQ(group.memory_kills(), 12U);
  EXPECT_EQ(group.entrances().size(), 2U);
}

TEST(Cgroup, OnlyWhatDiffersIsWritten) {
  TempTree tree;
  for (const char* name : {"cgroup.procs", "pids.max", "memory.max"}) tree.file(name, "");
  Cgroup group({tree.path()});
  group.limit(1000, 2);
  for (const char* name : {"pids.max", "memory.max"}) std::ofstream(tree.at(name)) << "untouched";
  group.limit(1000, 2);
  EXPECT_EQ(text_of(tree.at("memory.max")), "untouched");
  EXPECT_EQ(text_of(tree.at("pids.max")), "untouched");
  group.limit(1000, 3);
  EXPECT_EQ(text_of(tree.at("memory.max")), "untouched");
  EXPECT_EQ(text_of(tree.at("pids.max")).substr(0, 1), "3");
}

TEST(Cgroup, WithoutAControllerItSaysSo) {
  TempTree tree;
  for (const char* name : {"cgroup.procs", "pids.max"}) tree.file(name, "");
  Cgroup group({tree.path()});
  EXPECT_FALSE(group.limits_memory());
  EXPECT_TRUE(group.limits_processes());
  EXPECT_EQ(group.memory_kills(), 0U);
  group.limit(1000, 2);
  EXPECT_EQ(text_of(tree.at("pids.max")), "2");
}

TEST(Cgroup, NoGroupIsAnError) {
  TempTree tree;
  EXPECT_THROW(Cgroup({tree.path()}), sys::Error);  // no cgroup.procs
  EXPECT_THROW(Cgroup::make({tree.at("nowhere")}, "one"), sys::Error);
}

TEST(Cgroup, MakingAsksForTheControllersAndTakesBackWhatItMade) {
  TempTree tree;
  tree.directory("parent");
  tree.file("parent/cgroup.subtree_control", "");
  EXPECT_THROW(Cgroup::make({tree.at("parent"), tree.at("nowhere")}, "one"), sys::Error);
  EXPECT_NE(text_of(tree.at("parent/cgroup.subtree_control")), "");
  EXPECT_FALSE(std::filesystem::exists(tree.at("parent/one")));
}

TEST(Cgroup, StaleOnesAreThoseOfProcessesThatAreGone) {
  TempTree tree;
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(gone, nullptr, 0), gone);
  const std::string stale = "pyplaypen-" + std::to_string(gone) + "-abc-0";
  const std::string in_use = "pyplaypen-" + std::to_string(::getpid()) + "-abc-0";
  for (const std::string& name : {stale, in_use, std::string("pyplaypen-x-0"), std::string("other")})
    tree.directory(name);
  remove_stale_cgroups(tree.path());
  EXPECT_FALSE(std::filesystem::exists(tree.at(stale)));
  for (const std::string& name : {in_use, std::string("pyplaypen-x-0"), std::string("other")})
    EXPECT_TRUE(std::filesystem::exists(tree.at(name))) << name;
}

// ---- The kernel's own. ----

// A process that is in the group until it is killed, and so is its child.
pid_t start_member(const Cgroup& group) {
  auto [is_in, tell] = sys::pipe_pair();
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (const int entrance : group.entrances())
      if (enter_cgroup(entrance) != 0) ::_exit(1);
    if (::fork() < 0 || ::write(tell.get(), "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  tell.reset();
  char bytes[2];
  for (size_t got = 0; got < sizeof bytes;) {
    const ssize_t more = ::read(is_in.get(), bytes, sizeof bytes - got);
    if (more <= 0) return -1;
    got += static_cast<size_t>(more);
  }
  return pid;
}

void ends_its_members(const std::vector<std::string>& parents) {
  const std::string name = "pyplaypen-" + std::to_string(::getpid()) + "-test";
  pid_t member = 0;
  {
    const Cgroup group = Cgroup::make(parents, name);
    member = start_member(group);
    ASSERT_GT(member, 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(member, &status, 0), member);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  for (const std::string& parent : parents) EXPECT_FALSE(std::filesystem::exists(parent + "/" + name));
}

TEST(Cgroup, VersionOneEndsItsMembers) {
  const std::vector<std::string> parents = testing::cgroups_of_version_one();
  if (parents.empty()) GTEST_SKIP() << "no cgroup v1 hierarchies of memory and pids that may be written";
  ends_its_members(parents);
}

TEST(Cgroup, VersionTwoEndsItsMembers) {
  const std::string parent = testing::cgroup_of_version_two();
  if (parent.empty()) GTEST_SKIP() << "no cgroup v2 that may be written";
  ends_its_members({parent});
}

}  // namespace
}  // namespace pyplaypen::jail
