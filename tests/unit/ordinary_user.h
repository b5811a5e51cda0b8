// Runs a test's body as another user, in a forked child.
#pragma once

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>

#include "tests/unit/own_process.h"

namespace pyplaypen::testing {

// Nobody's: not in the password database, so that nothing else of the machine belongs to it.
inline constexpr uid_t kOrdinaryUser = 54321;

// Directories that root keeps to itself (/root) are on no way there.
inline bool everybody_may_enter(const std::filesystem::path& directory) {
  using std::filesystem::perms;
  std::filesystem::path part;
  for (const auto& name : std::filesystem::canonical(directory)) {
    part /= name;
    if ((std::filesystem::status(part).permissions() & perms::others_exec) == perms::none) return false;
  }
  return true;
}

// Runs `body` in a child that is `user` without any privilege (as root only). A failed expectation
// or an exception in it fails the calling test.
inline void run_as(uid_t user, const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (user != ::geteuid() &&
        (::setgroups(0, nullptr) != 0 || ::setresgid(user, user, user) != 0 ||
         ::setresuid(user, user, user) != 0))
      ::_exit(2);
    run_and_exit(body);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "in the child that ran as user " << user;
}

enum class Who { kSelf, kOrdinary };

// For value-parameterised fixtures whose tests must hold for root and for everybody else.
class AsWho : public ::testing::TestWithParam<Who> {
 protected:
  void run(const std::function<void()>& body) {
    if (GetParam() == Who::kSelf) return body();
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
    run_as(kOrdinaryUser, body);
  }
};

// What ctest shows of the parameter.
inline void PrintTo(Who who, std::ostream* out) {
  *out << (who == Who::kSelf ? "as oneself" : "as an ordinary user");
}

inline std::string who_name(const ::testing::TestParamInfo<Who>& info) {
  return info.param == Who::kSelf ? "AsSelf" : "AsOrdinaryUser";
}

}  // namespace pyplaypen::testing
