#include "runtime/sys/proc.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "runtime/sys/channel.h"
#include "runtime/sys/error.h"

namespace pyplaypen::sys {
namespace {

TEST(Proc, CountsThreads) {
  const int before = thread_count();
  EXPECT_GE(before, 1);
  auto [read_end, write_end] = pipe_pair();
  std::thread other([&, &read_end = read_end] {
    char byte;
    (void)!::read(read_end.get(), &byte, 1);
  });
  EXPECT_EQ(thread_count(), before + 1);
  write_end.reset();
  other.join();
}

TEST(Proc, OpenFdsAreThoseOfTheProcess) {
  const std::vector<int> before = open_fds();
  EXPECT_TRUE(std::is_sorted(before.begin(), before.end()));
  EXPECT_EQ(open_fds(), before) << "looking leaves none open";
  const UniqueFd extra(::fcntl(0, F_DUPFD_CLOEXEC, 200));
  ASSERT_GE(extra.get(), 200);
  std::vector<int> expected = before;
  expected.push_back(extra.get());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(open_fds(), expected);
}

TEST(Proc, ChildrenAreThoseOfTheThread) {
  if (!has_children_file()) GTEST_SKIP() << "needs CONFIG_PROC_CHILDREN";
  const std::vector<pid_t> before = children();
  auto [read_end, write_end] = pipe_pair();
  const pid_t child = ::fork();
  if (child == 0) {
    write_end.reset();
    char byte;
    (void)!::read(read_end.get(), &byte, 1);
    ::_exit(0);
  }
  const std::vector<pid_t> now = children();
  EXPECT_EQ(now.size(), before.size() + 1);
  EXPECT_NE(std::find(now.begin(), now.end(), child), now.end());
  write_end.reset();
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(children(), before);
}

TEST(Proc, MappedBytesFollowAMapping) {
  constexpr size_t kSize = size_t{64} << 20;
  const uint64_t before = mapped_bytes();
  void* const mapping =
      ::mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  EXPECT_GE(mapped_bytes(), before + kSize);
  ::munmap(mapping, kSize);
}

TEST(Proc, ReadsAWholeFileOrSaysWhichNot) {
  EXPECT_NE(read_small_file("/proc/self/status").find("\nPid:"), std::string::npos);
  EXPECT_THROW(read_small_file("/nonexistent"), Error);
}

}  // namespace
}  // namespace pyplaypen::sys
