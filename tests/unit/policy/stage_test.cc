#include "runtime/policy/stage.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace pyplaypen::policy {
namespace {

TEST(Stage, EachHasANameOfItsOwnThatLeadsBack) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(kLastStage); ++i) {
    const auto stage = static_cast<Stage>(i);
    EXPECT_TRUE(names.insert(stage_name(stage)).second) << stage_name(stage);
    EXPECT_EQ(stage_from_name(stage_name(stage)), stage);
  }
  EXPECT_EQ(stage_from_name("no such stage"), std::nullopt);
  EXPECT_EQ(stage_from_name(""), std::nullopt);
}

}  // namespace
}  // namespace pyplaypen::policy
