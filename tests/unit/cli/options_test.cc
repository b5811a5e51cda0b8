#include "cli/options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pyplaypen::cli {
namespace {

std::string refusal(const char* environment, const std::vector<std::string>& flags) {
  try {
    read_limits(environment, flags, LimitUse::kCommand);
  } catch (const LimitError& error) {
    return error.what();
  }
  return {};
}

TEST(ReadLimits, DefaultsThenEnvironmentThenFlags) {
  const std::vector<std::string> flags = {"wall_seconds=7", "wall_seconds=8"};
  const GivenLimits read =
      read_limits("wall_seconds=5,open_files=1_000", flags, LimitUse::kCommand);
  EXPECT_EQ(read.limits.wall_seconds, 8);
  EXPECT_EQ(read.limits.open_files, 1000U);
  EXPECT_EQ(read.limits.stdout_bytes, Limits().stdout_bytes);
  EXPECT_TRUE(read.given.contains("open_files"));
  EXPECT_FALSE(read.given.contains("stdout_bytes"));
}

TEST(ReadLimits, AnEmptyVariableOrEntryIsNone) {
  EXPECT_TRUE(read_limits("", {}, LimitUse::kCommand).given.empty());
  EXPECT_TRUE(read_limits(nullptr, {}, LimitUse::kCommand).given.empty());
  EXPECT_EQ(read_limits("wall_seconds=5,", {}, LimitUse::kCommand).given.size(), 1U);
}

TEST(ReadLimits, TellsWhoseFaultItIs) {
  EXPECT_EQ(refusal("bogus=1", {}).find("PYPLAYPEN_LIMITS: "), 0U);
  EXPECT_EQ(refusal(nullptr, {"bogus=1"}).find("PYPLAYPEN_LIMITS"), std::string::npos);
  EXPECT_NE(refusal(nullptr, {"wall_seconds"}), "");
  EXPECT_NE(refusal(nullptr, {"cpu_seconds=0.5"}), "");
}

}  // namespace
}  // namespace pyplaypen::cli
