#include "cli/sandbox_flags.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/exit_codes.h"
#include "cli/message.h"
#include "cli/options.h"
#include "supervisor/direct_policy.h"

namespace pyplaypen::cli {

void add_sandbox_flags(CLI::App& app, SandboxFlags& flags) {
  app.add_option("--limit", flags.limits, "a limit as name=value; may be repeated")->allow_extra_args(false);
  app.add_option("--env", flags.env, "NAME=value for the code's environment; may be repeated")
      ->allow_extra_args(false);
  app.add_flag("--inherit-env", flags.inherit_env, "give the code this command's whole environment");
  app.add_option("--extra", flags.extra, "JSON for the globals provider's ctx[\"extra\"]");
  app.add_option("--preload", flags.preload, "a module to import before the fork; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--globals-provider", flags.globals_provider, "module:function that gives names to the code");
  app.add_option("--type-projector", flags.type_projector,
                 "module:function that turns other values into data, such as "
                 "pyplaypen.projectors:numpy_pandas");
  app.add_option("--artifact-root", flags.artifact_root, "directory that the files left by the code move to");
  app.add_flag("--confine-writes", flags.confine_writes, "Landlock: no writes outside the call's own directories");
  app.add_option("--stdin-file", flags.stdin_file, "file that the code reads as its standard input");
  app.add_option("--python", flags.python, "interpreter or virtual environment to embed");
  add_cgroup_flag(app, flags.cgroups);
  add_namespace_flags(app, flags.namespaces);
}

void add_cgroup_flag(CLI::App& app, std::vector<std::string>& cgroups) {
  app.add_option("--cgroup", cgroups,
                 "a cgroup's directory that may be written: memory and processes are counted for each call as a "
                 "whole; repeated for the hierarchies of cgroup v1")
      ->allow_extra_args(false);
}

std::optional<int> parse_or_tell(CLI::App& app, std::span<char* const> arguments) {
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    return write_all(1, app.help()) ? kExitOk : kExitNotRun;
  } catch (const CLI::ParseError& error) {
    say(std::string(error.what()) + " (see " + app.get_name() + " --help)");
    return kExitUsage;
  }
}

SandboxOptions sandbox_options(const SandboxFlags& flags, int concurrency) {
  SandboxOptions options;
  options.max_concurrency = concurrency;
  options.spares = flags.spares;
  options.python = flags.python;
  options.preload = flags.preload;
  options.globals_provider = flags.globals_provider;
  options.type_projector = flags.type_projector;
  options.environment = flags.inherit_env ? HostEnvironment::kInherit : HostEnvironment::kAllowList;
  for (const std::string& pair : flags.env) {
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Refused("--env " + pair + " must be written as NAME=value");
    options.extra_environment.insert_or_assign(pair.substr(0, equals), pair.substr(equals + 1));
  }
  options.confine_writes = flags.confine_writes ? WriteConfinement::kLandlock : WriteConfinement::kNone;
  const supervisor::NamespaceRequest request = request_from(flags.namespaces);
  options.namespaces = request.namespaces;
  options.strictness = request.strictness;
  options.map_to = request.map_to;
  options.hostname = request.hostname;
  options.proc = request.proc;
  options.network = request.no_network ? Network::kNone : Network::kHost;
  options.cgroups.assign(flags.cgroups.begin(), flags.cgroups.end());
  options.on_unenforceable = OnUnenforceable::kWarn;
  // The call itself tells as much, and a moment sooner.
  options.self_check = SelfCheck::kNo;
  options.warn = [](std::string_view sentence) {
    if (!switched_on("PYPLAYPEN_QUIET")) say(sentence);
  };
  if (switched_on("PYPLAYPEN_AUDIT")) options.audit = [](std::string_view record) { say(record); };
  return options;
}

Context context_from(const SandboxFlags& flags) {
  Context context;
  context.extra_json = flags.extra;
  if (!nlohmann::json::accept(flags.extra)) throw Refused("--extra " + flags.extra + " is not JSON");
  context.artifact_root = flags.artifact_root;
  if (!flags.stdin_file.empty() && ::access(flags.stdin_file.c_str(), R_OK) != 0)
    throw Refused("--stdin-file " + flags.stdin_file + " cannot be read: " + std::strerror(errno));
  if (!flags.stdin_file.empty())
    context.stdin_source = {StandardInput::Kind::kFile, flags.stdin_file};
  return context;
}

Limits limits_from(const SandboxFlags& flags, const SandboxOptions& options) {
  GivenLimits read = read_limits(std::getenv(kLimitsVariable), flags.limits, LimitUse::kExecute);
  supervisor::lower_defaults(read.limits, read.given, LimitUse::kExecute);
  check_limits(read.limits);
  if (options.confine_writes == WriteConfinement::kLandlock &&
      probe_enforcement(options).at("filesystem_writes") == "unsupported")
    throw Refused("--confine-writes needs Landlock, which this kernel does not have or has switched off "
                  "(CONFIG_SECURITY_LANDLOCK, and landlock in CONFIG_LSM or lsm=)");
  if (read.given.contains("process_count") &&
      probe_enforcement(options).at("process_count") == "unsupported")
    throw Refused(
        "limit process_count cannot be kept here: run as root, or allow user namespaces, or give a --cgroup, or set a pids cap "
        "(docker run --pids-limit=N)");
  return read.limits;
}

}  // namespace pyplaypen::cli
