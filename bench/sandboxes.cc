#include "bench/sandboxes.h"

#include <stdexcept>

namespace pyplaypen::bench {

Sandbox& Sandboxes::get(const std::string& name, const SandboxOptions& options) {
  std::unique_ptr<Sandbox>& made = made_[name];
  if (!made) made = std::make_unique<Sandbox>(options);
  return *made;
}

Sandbox& Sandboxes::none_ready() {
  SandboxOptions options;
  options.spares = 0;
  return get("none ready", options);
}

Sandbox& Sandboxes::with_preload(const std::string& module, int spares) {
  SandboxOptions options;
  options.preload = {module};
  options.spares = spares;
  return get(module + " " + std::to_string(spares), options);
}

Sandbox& Sandboxes::sustained(int concurrency) {
  SandboxOptions options;
  options.max_concurrency = concurrency;
  return get("sustained " + std::to_string(concurrency), options);
}

std::string value_of(const Result& result) {
  if (!result.ok())
    throw std::runtime_error(std::string(error_type_name(result.error->type)) + ": " + result.error->message);
  return result.return_value;
}

}  // namespace pyplaypen::bench
