// One Sandbox used from many threads. The tsan preset runs this.
#include <atomic>
#include <thread>
#include <vector>

#include "tests/integration/sandbox_fixture.h"

namespace pyplaypen {
namespace {

TEST(Threads, EachCallGetsItsOwnAnswer) {
  SandboxOptions options = quiet_options();
  options.max_concurrency = 3;  // fewer than threads: some wait
  Sandbox sandbox(options);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        const int value = t * 1000 + i;
        const Result result = sandbox.execute("print(" + std::to_string(value) + ")\n" + std::to_string(value));
        if (result.return_value != std::to_string(value) ||
            result.stdout_output.bytes != std::to_string(value) + "\n")
          ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, SomeCancelWhileOthersCall) {
  SandboxOptions options = quiet_options();
  Sandbox sandbox(options);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        if (t % 2 == 0) {
          Call call = sandbox.start("import time\ntime.sleep(30)");
          call.advance();
        } else if (sandbox.execute("2 + 2").return_value != "4") {
          ++wrong;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace pyplaypen
