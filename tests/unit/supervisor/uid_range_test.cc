#include "supervisor/uid_range.h"

#include <gtest/gtest.h>

namespace pyplaypen::supervisor {
namespace {

TEST(UsableUids, TheInitialNamespaceHasThemAll) {
  EXPECT_EQ(usable_uids("         0          0 4294967295\n", 65536), 65536U);
  EXPECT_EQ(usable_uids("0 0 4294967295\n", 1000), 1000U);
}

TEST(UsableUids, ARootlessContainerGivesTheEndOfItsRange) {
  EXPECT_EQ(usable_uids("0 1000 1\n1 100000 65536\n", 65536), 65534U - 1024);
  EXPECT_EQ(usable_uids("0 100000 65536\n", 65536), 65534U - 1024);
  EXPECT_EQ(usable_uids("0 100000 65536\n", 30000), 30000U);
}

TEST(UsableUids, ANamespaceOfOneUserHasNone) {
  EXPECT_EQ(usable_uids("0 1000 1\n", 65536), std::nullopt);
  EXPECT_EQ(usable_uids("", 65536), std::nullopt);
}

}  // namespace
}  // namespace pyplaypen::supervisor
