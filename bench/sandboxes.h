// The Sandboxes that are measured: made at their first use, alive side by side until the end.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "pyplaypen/sandbox.h"

namespace pyplaypen::bench {

class Sandboxes {
 public:
  // All defaults.
  Sandbox& ready() { return get("ready", {}); }
  // No child is forked ahead: a call waits for the fork.
  Sandbox& none_ready();
  Sandbox& with_preload(const std::string& module, int spares);
  // As `batch -j concurrency` has it.
  Sandbox& sustained(int concurrency);

 private:
  Sandbox& get(const std::string& name, const SandboxOptions& options);

  std::map<std::string, std::unique_ptr<Sandbox>> made_;
};

// The value as JSON text. Throws std::runtime_error with the call's error.
std::string value_of(const Result& result);

}  // namespace pyplaypen::bench
