// Runs a test's body in a forked child, for what a process cannot undo.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>

namespace pyplaypen::testing {

// The rest of a forked child's life: `body`, in which an exception is a failure, and then an exit status that
// tells whether any expectation has failed.
[[noreturn]] inline void run_and_exit(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  std::fflush(nullptr);
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

// A failed expectation or an exception in the child fails the calling test; so does a child that is
// still at it after a minute.
inline void in_own_process(const std::function<void()>& body) {
  constexpr unsigned kHangs = 60;  // s
  std::fflush(nullptr);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(kHangs);
    run_and_exit(body);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "wait status of the test's own process";
}

}  // namespace pyplaypen::testing
