#include "runtime/sys/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

namespace pyplaypen::sys {
namespace {

static_assert(!std::is_copy_constructible_v<UniqueFd> && !std::is_copy_assignable_v<UniqueFd>);
static_assert(!std::is_convertible_v<int, UniqueFd> && !std::is_convertible_v<UniqueFd, int>);

int some_fd() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(UniqueFd, ClosesOnce) {
  const int fd = some_fd();
  { const UniqueFd owner(fd); }
  EXPECT_FALSE(is_open(fd));
}

TEST(UniqueFd, MovesItsDescriptor) {
  const int fd = some_fd();
  UniqueFd first(fd);
  UniqueFd second(std::move(first));
  EXPECT_FALSE(first);
  EXPECT_EQ(second.get(), fd);
  const int other = some_fd();
  UniqueFd third(other);
  third = std::move(second);
  EXPECT_FALSE(is_open(other));
  EXPECT_EQ(third.get(), fd);
  EXPECT_TRUE(is_open(fd));
}

TEST(UniqueFd, SurvivesAMoveOntoItself) {
  UniqueFd owner(some_fd());
  UniqueFd& same = owner;
  owner = std::move(same);
  EXPECT_TRUE(is_open(owner.get()));
}

TEST(UniqueFd, ReleaseGivesItAway) {
  const int fd = some_fd();
  {
    UniqueFd owner(fd);
    EXPECT_EQ(owner.release(), fd);
    EXPECT_FALSE(owner);
  }
  EXPECT_TRUE(is_open(fd));
  ::close(fd);
}

TEST(UniqueFd, KeepsErrno) {
  UniqueFd owner(some_fd());
  errno = EXDEV;
  owner.reset();
  EXPECT_EQ(errno, EXDEV);
  UniqueFd bad(1'000'000);
  bad.reset();
  EXPECT_EQ(errno, EXDEV);
}

}  // namespace
}  // namespace pyplaypen::sys
