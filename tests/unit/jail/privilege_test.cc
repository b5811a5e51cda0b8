#include "pyplaypen/privilege.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/sys/raw.h"
#include "tests/unit/ordinary_user.h"
#include "tests/unit/own_process.h"

namespace pyplaypen {
namespace {

using testing::AsWho;
using testing::in_own_process;
using testing::Who;

constexpr uid_t kUid = 54322;
constexpr gid_t kGid = 54323;

rlimit limit_of(__rlimit_resource resource) {
  rlimit limit{};
  EXPECT_EQ(::getrlimit(resource, &limit), 0);
  return limit;
}

TEST(DropRootPrivileges, GivesUpEverythingForGood) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  in_own_process([] {
    // Capabilities that would outlive a plain setresuid.
    ASSERT_EQ(::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), 0);
    ASSERT_EQ(drop_root_privileges(kUid, kGid), 0);
    uid_t real = 0;
    uid_t effective = 0;
    uid_t saved = 0;
    ASSERT_EQ(::getresuid(&real, &effective, &saved), 0);
    EXPECT_EQ(real, kUid);
    EXPECT_EQ(effective, kUid);
    EXPECT_EQ(saved, kUid);
    EXPECT_EQ(::getgid(), kGid);
    EXPECT_EQ(::getgroups(0, nullptr), 0);
    for (int capability = 0; capability <= CAP_LAST_CAP; ++capability)
      EXPECT_FALSE(sys::raw::has_capability(capability)) << capability;
    EXPECT_EQ(sys::raw::setresuid(0, 0, 0), -1);
    EXPECT_EQ(::setgid(0), -1);
  });
}

TEST(DropRootPrivileges, DropsASavedRootToo) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  in_own_process([] {
    // Real and effective UID are another's, the saved one is still root: root could be taken back. The
    // kernel asks for CAP_SETUID, which is gone with the effective UID; so this is told, not passed over.
    ASSERT_EQ(sys::raw::setresuid(kUid, kUid, 0), 0);
    EXPECT_EQ(drop_root_privileges(kUid, kGid), EPERM);
  });
}

TEST(DropRootPrivileges, RootIsNoUserToDropTo) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(drop_root_privileges(0, 0), EINVAL);
}

TEST(DropRootPrivileges, DoesNothingForOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  testing::run_as(testing::kOrdinaryUser, [] {
    EXPECT_EQ(drop_root_privileges(kUid, kGid), 0);
    EXPECT_EQ(::getuid(), testing::kOrdinaryUser);
  });
}

class ResourceLimitsTest : public AsWho {};
INSTANTIATE_TEST_SUITE_P(, ResourceLimitsTest, ::testing::Values(Who::kSelf, Who::kOrdinary),
                         testing::who_name);

TEST_P(ResourceLimitsTest, EachIsSetSoftAndHard) {
  run([] {
    in_own_process([] {
      ResourceLimits limits;
      limits.cpu_seconds = 1000;
      limits.memory_bytes = uint64_t{1} << 40;
      limits.process_count = 100;
      limits.open_files = 100;
      limits.file_bytes = 12345;
      ASSERT_EQ(apply_resource_limits(limits), 0);
      EXPECT_EQ(limit_of(RLIMIT_CPU).rlim_cur, 1000U);
      EXPECT_EQ(limit_of(RLIMIT_CPU).rlim_max, 1001U);
      EXPECT_EQ(limit_of(RLIMIT_AS).rlim_max, uint64_t{1} << 40);
      EXPECT_EQ(limit_of(RLIMIT_NPROC).rlim_max, 100U);
      EXPECT_EQ(limit_of(RLIMIT_NOFILE).rlim_max, 100U);
      EXPECT_EQ(limit_of(RLIMIT_FSIZE).rlim_max, 12345U);
      EXPECT_EQ(limit_of(RLIMIT_CORE).rlim_max, 0U);
    });
  });
}

TEST_P(ResourceLimitsTest, AbsentOnesAreLeftAlone) {
  run([] {
    in_own_process([] {
      const rlimit before = limit_of(RLIMIT_NOFILE);
      ResourceLimits limits;
      limits.core_dumps = true;
      const rlimit core = limit_of(RLIMIT_CORE);
      ASSERT_EQ(apply_resource_limits(limits), 0);
      EXPECT_EQ(limit_of(RLIMIT_NOFILE).rlim_max, before.rlim_max);
      EXPECT_EQ(limit_of(RLIMIT_CORE).rlim_max, core.rlim_max);
    });
  });
}

TEST(ApplyResourceLimits, AboveTheHardLimitIsAnErrno) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  testing::run_as(testing::kOrdinaryUser, [] {
    in_own_process([] {
      ResourceLimits limits;
      limits.open_files = 50;
      ASSERT_EQ(apply_resource_limits(limits), 0);
      limits.open_files = 51;
      EXPECT_EQ(apply_resource_limits(limits), EPERM);
    });
  });
}

}  // namespace
}  // namespace pyplaypen
