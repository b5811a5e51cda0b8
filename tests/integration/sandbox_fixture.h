// One Sandbox for the tests of a suite, and looks at what it leaves.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "pyplaypen/sandbox.h"
#include "runtime/sys/proc.h"

namespace pyplaypen {

inline SandboxOptions quiet_options() {
  SandboxOptions options;
  options.max_concurrency = 2;
  options.on_unenforceable = OnUnenforceable::kWarn;
  options.warn = [](std::string_view) {};
  return options;
}

// Starting a Sandbox takes 40 ms; what one call does must not matter to the next anyway.
class SandboxTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { sandbox_ = std::make_unique<Sandbox>(quiet_options()); }
  static void TearDownTestSuite() { sandbox_.reset(); }

  void SetUp() override { fds_before_ = sys::open_fds(); }
  void TearDown() override {
    // The keepers' channels may have grown by one slot; a leak of each call would show at once.
    EXPECT_LE(sys::open_fds().size(), fds_before_.size() + 12);
    EXPECT_EQ(::access("/proc/self", R_OK), 0);
  }

  static Result run(std::string_view code, const Limits& limits = {}) {
    return sandbox_->execute(code, {}, limits);
  }
  // The type's name, or "ok".
  static std::string type_of(const Result& result) {
    return result.ok() ? "ok" : std::string(error_type_name(result.error->type));
  }
  static std::string type_of(std::string_view code, const Limits& limits = {}) {
    return type_of(run(code, limits));
  }
  static bool is_root() { return ::geteuid() == 0; }
  static bool counts_processes() {
    return sandbox_->enforcement().at("process_count") == "hard_per_call";
  }

  static inline std::unique_ptr<Sandbox> sandbox_;
  std::vector<int> fds_before_;
};

}  // namespace pyplaypen
