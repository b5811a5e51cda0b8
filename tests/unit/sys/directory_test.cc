#include "runtime/sys/directory.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/unit/temp_tree.h"

namespace pyplaypen::sys {
namespace {

using testing::TempTree;

TEST(DirectoryReader, GivesEachEntryOnceFromTheStart) {
  const TempTree tree(testing::fast_directory());
  tree.many_files(3000, std::string(60, 'n'));  // more than one buffer
  tree.directory(".dot");
  for (int round = 0; round < 2; ++round) {
    DirectoryReader reader(tree.fd());
    std::set<std::string> names;
    while (const auto entry = reader.next()) {
      EXPECT_TRUE(names.emplace(entry->name).second);
      EXPECT_EQ(entry->name.data()[entry->name.size()], '\0');
      EXPECT_EQ(entry->type, entry->name == ".dot" ? DT_DIR : DT_REG);
    }
    EXPECT_EQ(reader.error(), 0);
    EXPECT_EQ(names.size(), 3001U);
  }
}

TEST(DirectoryReader, TellsWhatEndedIt) {
  DirectoryReader none(-1);
  EXPECT_FALSE(none.next());
  EXPECT_EQ(none.error(), EBADF);
  const TempTree tree;
  ::rmdir(tree.path().c_str());
  DirectoryReader removed(tree.fd());
  EXPECT_FALSE(removed.next());
  EXPECT_EQ(removed.error(), ENOENT);
}

}  // namespace
}  // namespace pyplaypen::sys
