#include "cli/commands/enforcement.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/exit_codes.h"
#include "cli/message.h"
#include "cli/sandbox_flags.h"
#include "pyplaypen/sandbox.h"

namespace pyplaypen::cli {

int enforcement_command(std::span<char* const> arguments) {
  bool as_json = false;
  std::vector<std::string> cgroups;
  CLI::App app("Says what enforces each limit on this machine.", "pyplaypen enforcement");
  app.add_flag("--json", as_json, "one JSON object");
  add_cgroup_flag(app, cgroups);
  if (const auto exit = parse_or_tell(app, arguments)) return *exit;
  SandboxOptions options;
  options.cgroups.assign(cgroups.begin(), cgroups.end());
  const Enforcement map = probe_enforcement(options);
  std::string text;
  if (as_json) {
    text = nlohmann::json(map).dump() + "\n";
  } else {
    for (const auto& [name, value] : map) text += name + ": " + value + "\n";
  }
  return write_all(STDOUT_FILENO, text) ? kExitOk : kExitNotRun;
}

}  // namespace pyplaypen::cli
