// The options that exec and batch share: flags -> SandboxOptions, Context, Limits.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/namespace_flags.h"
#include "pyplaypen/sandbox.h"

namespace pyplaypen::cli {

struct SandboxFlags {
  std::vector<std::string> limits;  // name=value
  std::vector<std::string> env;     // NAME=value
  bool inherit_env = false;
  std::string extra = "{}";
  std::vector<std::string> preload;
  std::string globals_provider;
  std::string type_projector;
  std::string artifact_root;
  bool confine_writes = false;
  std::string stdin_file;
  std::string python;
  int spares = -1;
  std::vector<std::string> cgroups;
  NamespaceFlags namespaces;
};

void add_sandbox_flags(CLI::App& app, SandboxFlags& flags);
void add_cgroup_flag(CLI::App& app, std::vector<std::string>& cgroups);

// Parses the command line; an exit code when there is nothing to run: --help, or an error that was told.
std::optional<int> parse_or_tell(CLI::App& app, std::span<char* const> arguments);

// Each throws a std::exception with a sentence for what was given wrongly.
SandboxOptions sandbox_options(const SandboxFlags& flags, int concurrency);
Context context_from(const SandboxFlags& flags);
// PYPLAYPEN_LIMITS first, then --limit. Refuses a process_count that was asked for and cannot be kept.
Limits limits_from(const SandboxFlags& flags, const SandboxOptions& options);

}  // namespace pyplaypen::cli
