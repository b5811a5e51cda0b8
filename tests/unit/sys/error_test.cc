#include "runtime/sys/error.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>

namespace pyplaypen::sys {
namespace {

TEST(Error, NamesTheCallAndItsOperand) {
  try {
    check(::open("/nonexistent/x", O_RDONLY), "open", "/nonexistent/x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "open(/nonexistent/x): No such file or directory");
    EXPECT_EQ(error.code(), std::errc::no_such_file_or_directory);
  }
  EXPECT_EQ(std::string(Error(EPERM, "setuid").what()), "setuid: Operation not permitted");
}

TEST(Error, CheckGivesTheResultBack) { EXPECT_EQ(check(7, "call"), 7); }

TEST(RetryEintr, RepeatsOnlyAnInterruptedCall) {
  int calls = 0;
  EXPECT_EQ(retry_eintr([&] {
              errno = EINTR;
              return ++calls < 3 ? -1 : 5;
            }),
            5);
  EXPECT_EQ(calls, 3);
  calls = 0;
  EXPECT_EQ(retry_eintr([&] {
              errno = EAGAIN;
              ++calls;
              return -1;
            }),
            -1);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace pyplaypen::sys
