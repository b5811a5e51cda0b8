#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "supervisor/stale.h"
#include "tests/unit/temp_tree.h"

namespace pyplaypen::supervisor {
namespace {

using testing::TempTree;

TEST(StaleFromManyThreads, ASweepNeverTakesOneThatIsBeingMade) {
  const TempTree temp;
  std::atomic<bool> done = false;
  std::thread sweeper([&] {
    while (!done) sweep(temp.path());
  });
  std::vector<std::thread> makers;
  for (int i = 0; i < 4; ++i) {
    makers.emplace_back([&] {
      for (int k = 0; k < 200; ++k) {
        const BaseDirectory base(temp.path());
        EXPECT_TRUE(base.fd() >= 0 && ::access(base.path().c_str(), F_OK) == 0);
      }
    });
  }
  for (std::thread& maker : makers) maker.join();
  done = true;
  sweeper.join();
}

}  // namespace
}  // namespace pyplaypen::supervisor
