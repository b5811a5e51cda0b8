#include "supervisor/enforcement.h"

#include <gtest/gtest.h>

namespace pyplaypen::supervisor {
namespace {

Host root_host() {
  Host host;
  host.is_root = true;
  host.features.can_drop_uid = true;
  host.features.user_namespace = true;
  host.features.landlock_abi = 7;
  host.features.children_file = true;
  host.first_uid = 65536;
  return host;
}

Host ordinary_host() {
  Host host = root_host();
  host.is_root = false;
  host.features.can_drop_uid = false;
  host.first_uid.reset();
  return host;
}

TEST(Enforcement, RootCountsProcessesByAUserOfTheSlotsOwn) {
  EXPECT_EQ(enforcement_for({}, root_host()).at("process_count"), "hard_per_call");
}

TEST(Enforcement, AnOrdinaryUserCountsThemByAUserNamespace) {
  EXPECT_EQ(enforcement_for({}, ordinary_host()).at("process_count"), "hard_per_call");
}

TEST(Enforcement, WithNeitherItIsTheContainersCapOrNothing) {
  Host host = ordinary_host();
  host.features.user_namespace = false;
  const Enforcement without = enforcement_for({}, host);
  EXPECT_EQ(without.at("process_count"), "unsupported");
  EXPECT_NE(unenforceable(without).find("--pids-limit"), std::string::npos);
  host.pids_cap = 64;
  const Enforcement capped = enforcement_for({}, host);
  EXPECT_EQ(capped.at("process_count"), "container");
  EXPECT_EQ(unenforceable(capped), "");
}

TEST(Enforcement, RootThatKeepsItsUidHasNoCountOfItsOwn) {
  SandboxOptions options;
  options.child_uid = 0;
  EXPECT_EQ(enforcement_for(options, root_host()).at("process_count"), "unsupported");
}

TEST(Enforcement, WritesAreSaidAbiByAbi) {
  SandboxOptions confined;
  confined.confine_writes = WriteConfinement::kLandlock;
  Host host = root_host();
  const auto writes = [&](const SandboxOptions& options, int abi) {
    host.features.landlock_abi = abi;
    return enforcement_for(options, host).at("filesystem_writes");
  };
  EXPECT_EQ(writes({}, 0), "unsupported");
  EXPECT_EQ(writes({}, 1), "available");
  EXPECT_EQ(writes(confined, 1), "hard_content_except_truncate");
  EXPECT_EQ(writes(confined, 2), "hard_content_except_truncate");
  EXPECT_EQ(writes(confined, 3), "hard_content");
  EXPECT_EQ(writes(confined, 7), "hard_content");
  host.features.landlock_abi = 0;
  EXPECT_THROW(refuse_missing(confined, host), Refused);
  EXPECT_NO_THROW(refuse_missing({}, host));
}

TEST(Enforcement, CommandsShareAUserUnlessTheyStayRoot) {
  EXPECT_EQ(enforcement_for({}, root_host()).at("process_count_of_commands"), "hard_per_user");
  SandboxOptions options;
  options.command_uid = 0;
  EXPECT_EQ(enforcement_for(options, root_host()).at("process_count_of_commands"), "unsupported");
  EXPECT_EQ(enforcement_for({}, ordinary_host()).at("process_count_of_commands"), "hard_per_call");
}

TEST(Enforcement, ARootThatCannotEndOrCleanUpAfterOthersIsRefused) {
  Host host = root_host();
  host.missing_rights = "CAP_DAC_OVERRIDE, CAP_KILL";
  try {
    refuse_missing({}, host);
    ADD_FAILURE() << "not refused";
  } catch (const Refused& refused) {
    EXPECT_NE(std::string_view(refused.what()).find(host.missing_rights), std::string_view::npos) << refused.what();
  }
  SandboxOptions options;
  options.child_uid = 0;
  EXPECT_THROW(refuse_missing(options, host), Refused);  // commands still are another user's
  options.command_uid = 0;
  EXPECT_NO_THROW(refuse_missing(options, host));
}

TEST(Enforcement, AKernelWhereCallsCannotBeToldFromOthersIsRefused) {
  Host host = ordinary_host();
  host.features.landlock_abi = 5;
  EXPECT_NO_THROW(refuse_missing({}, host));
  host.features.children_file = false;
  EXPECT_THROW(refuse_missing({}, host), Refused);
}

TEST(Enforcement, ACgroupHoldsThoseWhoCannotWriteItsFiles) {
  const CgroupOffer both{true, true, {}};
  SandboxOptions options;
  options.cgroups = {"/sys/fs/cgroup/ours"};
  const auto words = [&](const Host& host) {
    const Enforcement map = enforcement_for(options, host, {}, both);
    return map.at("memory_bytes") + " " + map.at("process_count") + " " + map.at("process_count_of_commands");
  };
  EXPECT_EQ(words(root_host()), "hard_per_call hard_per_call hard_per_call");
  EXPECT_EQ(cgroup_gap(options, root_host(), both), "");
  Host ordinary = ordinary_host();
  ordinary.features.user_namespace = false;
  EXPECT_EQ(words(ordinary), "hard_per_process unsupported unsupported");
  EXPECT_NE(cgroup_gap(options, ordinary, both).find("--confine-writes"), std::string::npos);
  options.confine_writes = WriteConfinement::kLandlock;
  EXPECT_EQ(words(ordinary), "hard_per_call hard_per_call hard_per_call");
  EXPECT_EQ(cgroup_gap(options, ordinary, both), "");
  options.confine_writes = WriteConfinement::kNone;
  options.command_uid = 0;
  EXPECT_EQ(words(root_host()), "hard_per_process hard_per_call unsupported");
  EXPECT_EQ(cgroup_gap({}, ordinary, {}), "");
}

TEST(Enforcement, WhatACgroupCannotCountIsSaid) {
  SandboxOptions options;
  options.cgroups = {"/sys/fs/cgroup/ours"};
  const CgroupOffer processes_only{false, true, "no memory there"};
  EXPECT_EQ(enforcement_for(options, root_host(), {}, processes_only).at("memory_bytes"), "hard_per_process");
  EXPECT_EQ(cgroup_gap(options, root_host(), processes_only), "no memory there");
}

TEST(Enforcement, HasAnEntryForEveryLimit) {
  const Enforcement map = enforcement_for({}, root_host());
  for (const std::string_view name : limit_names()) EXPECT_TRUE(map.contains(std::string(name))) << name;
}

}  // namespace
}  // namespace pyplaypen::supervisor
