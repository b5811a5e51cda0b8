#include "cli/commands/run.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "cli/exit_codes.h"
#include "cli/message.h"
#include "cli/namespace_flags.h"
#include "cli/options.h"
#include "cli/stdin_program.h"
#include "pyplaypen/error.h"
#include "supervisor/direct_audit.h"
#include "supervisor/direct_run.h"

namespace pyplaypen::cli {
namespace {

using supervisor::DirectResult;
using supervisor::DirectRun;

constexpr uid_t kDefaultChildUid = 65534;  // nobody

struct Flags {
  std::vector<std::string> limits;
  std::vector<std::string> argv;
  bool confine_writes = false;
  bool pass_stdin = false;
  bool stream = false;
  bool merge_output = false;
  uid_t child_uid = kDefaultChildUid;
  NamespaceFlags namespaces;
};

struct Parsed {
  Flags flags;
  std::optional<int> exit;  // nothing to run: --help, or an error that has been told
};

// Everything after the first "--" is the target's, a further "--" of its own included.
Parsed parse(std::span<char* const> arguments) {
  const auto separator = std::ranges::find(arguments, std::string_view("--"),
                                           [](const char* text) { return std::string_view(text); });
  Parsed parsed;
  Flags& flags = parsed.flags;
  CLI::App app("Runs a command under limits, in the current directory and environment:\n"
               "  pyplaypen run [options] -- COMMAND [ARGUMENT]...",
               "pyplaypen run");
  app.footer("Exit status: the command's own, 128 + N when signal N ended it, 124 at wall_seconds; 126 it cannot be\n"
             "executed, 127 there is none, 125 not run, 2 usage, or a limit or confinement refused.");
  app.add_option("--limit", flags.limits, "NAME=VALUE: a limit; may be repeated")
      ->allow_extra_args(false);
  app.add_flag("--confine-writes", flags.confine_writes,
               "let it write beneath the current directory and its TMPDIR only");
  app.add_flag("--stdin", flags.pass_stdin, "pass standard input on; otherwise it is empty");
  app.add_flag("--stream", flags.stream, "copy its output as it comes instead of at its end");
  app.add_flag("--merge-output", flags.merge_output, "send its stderr where its stdout goes");
  app.add_option("--child-uid", flags.child_uid,
                 "as root: the UID and GID it runs as (65534); 0 keeps root's");
  add_namespace_flags(app, flags.namespaces);
  const auto count = static_cast<int>(separator - arguments.begin());
  try {
    app.parse(count, arguments.data());
  } catch (const CLI::CallForHelp&) {
    parsed.exit = write_all(STDOUT_FILENO, app.help()) ? kExitOk : kExitNotRun;
    return parsed;
  } catch (const CLI::ParseError& error) {
    say(std::string(error.what()) + " (put -- before the command; see pyplaypen run --help)");
    parsed.exit = kExitUsage;
    return parsed;
  }
  if (arguments.end() - separator > 1) {
    flags.argv.assign(separator + 1, arguments.end());
  } else {
    say("no command given: pyplaypen run [options] -- COMMAND [ARGUMENT]...");
    parsed.exit = kExitUsage;
  }
  return parsed;
}

std::vector<std::string> current_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

bool is_rootless(const DirectRun& run) { return !run.identity && ::geteuid() != 0; }

// A default is no reason for a user namespace: in one, files of other users show as nobody's.
void count_processes_in_namespace(DirectRun& run, const GivenLimits& limits) {
  if (!limits.given.contains("process_count") || !is_rootless(run) || !userns_available()) return;
  if (run.namespaces.namespaces.contains(Namespace::kUser)) return;
  run.namespaces.namespaces.insert(Namespace::kUser);
  run.namespaces.map_to = MapTo::kSelf;
}

std::string_view process_count_of(const DirectRun& run, const GivenLimits& limits) {
  Namespaces expected = run.namespaces.all();
  if (is_rootless(run)) {
    const bool must_know = limits.given.contains("process_count");
    if (must_know && !userns_available()) expected = {};
    if (!expected.empty()) expected.insert(Namespace::kUser);  // around the others
  }
  return supervisor::process_count_enforcement(run.identity, expected);
}

// A sentence about what was asked for and cannot be had here.
std::optional<std::string> refusal(const DirectRun& run, const GivenLimits& limits) {
  if (run.writes == supervisor::WriteSet::kConfined && run.landlock_abi == 0)
    return "--confine-writes needs Landlock, which this kernel does not have or has switched off "
           "(CONFIG_SECURITY_LANDLOCK, and landlock in CONFIG_LSM or lsm=)";
  if (run.stdin_source == supervisor::StdinSource::kEmpty && reads_program_from_stdin(run.argv))
    return "'" + run.argv[0] +
           "' would read its program from stdin, which is empty here; pass --stdin, or give it a file "
           "or -c";
  if (limits.given.contains("process_count") && process_count_of(run, limits) == "unsupported")
    return "process_count=" + limit_text(run.limits, "process_count") +
           " cannot be enforced here: run as root, so that the command gets a user whose processes can "
           "be counted, or allow user namespaces, or put a pids cap on the container (docker run --pids-limit=64)";
  return std::nullopt;
}

void warn(const DirectRun& run, const GivenLimits& limits) {
  if (switched_on("PYPLAYPEN_QUIET")) return;
  if (!limits.given.contains("process_count") && process_count_of(run, limits) == "unsupported")
    say("process_count is not enforced here: not root, no pids cap on the container, and not given "
        "(PYPLAYPEN_QUIET=1 silences this)");
  if (run.identity)
    if (const auto warning = supervisor::unwritable_directory_warning(*run.identity)) say(*warning);
}

std::string signal_name(int number) {
  const char* const name = ::sigabbrev_np(number);
  const std::string text = std::to_string(number);
  return name != nullptr ? text + " (SIG" + name + ")" : text;
}

std::string as_whom(const DirectRun& run) {
  return run.identity ? " as uid " + std::to_string(run.identity->uid) : std::string();
}

// What there is to say about the end, one sentence or none.
std::string verdict(const DirectRun& run, const DirectResult& result) {
  switch (result.status) {
    case DirectResult::Status::kNotStarted: {
      const std::string why = ::strerror(result.failure.error);
      if (result.failure.stage == policy::Stage::kExec)
        return "cannot run '" + run.argv[0] + "'" + as_whom(run) + ": " + why;
      return "setting up the command failed at stage '" +
             std::string(policy::stage_name(result.failure.stage)) + "': " + why;
    }
    case DirectResult::Status::kTimeout:
      return "wall_seconds=" + limit_text(run.limits, "wall_seconds") +
             " exceeded; the command and all it started were killed";
    case DirectResult::Status::kEnded: break;
  }
  if (result.cpu_limit)
    return "cpu_seconds=" + limit_text(run.limits, "cpu_seconds") + " exceeded; killed by signal " +
           signal_name(WTERMSIG(result.wait_status));
  if (WIFSIGNALED(result.wait_status))
    return "killed by signal " + signal_name(WTERMSIG(result.wait_status));
  return {};
}

int exit_code(const DirectResult& result) {
  switch (result.status) {
    case DirectResult::Status::kTimeout: return kExitTimeout;
    case DirectResult::Status::kNotStarted:
      if (result.failure.stage != policy::Stage::kExec) return kExitNotRun;
      return result.failure.error == ENOENT ? kExitNotFound : kExitNotExecutable;
    case DirectResult::Status::kEnded: break;
  }
  if (result.delivery_error != 0) return kExitNotRun;
  if (result.cpu_limit) return kExitSignalBase + SIGXCPU;
  if (WIFSIGNALED(result.wait_status)) return kExitSignalBase + WTERMSIG(result.wait_status);
  return WEXITSTATUS(result.wait_status);
}

void tell(const DirectRun& run, const DirectResult& result) {
  std::string lines;
  if (!switched_on("PYPLAYPEN_QUIET"))
    for (const std::string& note : result.notes) lines.append(note).append("\n");
  lines.append(verdict(run, result));
  if (lines.ends_with('\n')) lines.pop_back();
  if (result.delivery_error != 0)
    lines.append(lines.empty() ? "" : "\n")
        .append("its output could not be written: ")
        .append(::strerror(result.delivery_error));
  if (switched_on("PYPLAYPEN_AUDIT"))
    lines.append(lines.empty() ? "" : "\n").append(supervisor::audit_record(run, result));
  if (lines.empty()) return;
  // Our lines start as lines, whatever the command left behind.
  if (result.mid_line) (void)write_all(STDERR_FILENO, "\n");
  say(lines);
}

int run_or_throw(std::span<char* const> arguments) {
  Parsed parsed = parse(arguments);
  if (parsed.exit) return *parsed.exit;
  Flags& flags = parsed.flags;
  GivenLimits limits = read_limits(std::getenv(kLimitsVariable), flags.limits, LimitUse::kCommand);
  supervisor::lower_defaults(limits.limits, limits.given, LimitUse::kCommand);
  check_limits(limits.limits, LimitUse::kCommand);

  DirectRun run;
  run.argv = std::move(flags.argv);
  run.environment = current_environment();
  run.limits = limits.limits;
  run.identity = supervisor::child_identity(flags.child_uid);
  run.namespaces = request_from(flags.namespaces);
  count_processes_in_namespace(run, limits);
  if (flags.confine_writes) run.writes = supervisor::WriteSet::kConfined;
  if (flags.pass_stdin) run.stdin_source = supervisor::StdinSource::kInherited;
  if (flags.merge_output) run.streams = supervisor::Streams::kMerged;
  if (switched_on("PYPLAYPEN_AUDIT")) run.hashing = supervisor::Hashing::kSha256;
  if (flags.stream) {
    run.output = supervisor::OutputMode::kStreamed;
    // The defaults bound what is kept, and a stream keeps nothing; one that was given bounds the stream.
    constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
    if (!limits.given.contains("stdout_bytes")) run.limits.stdout_bytes = kAll;
    if (!limits.given.contains("stderr_bytes")) run.limits.stderr_bytes = kAll;
  }
  if (const auto sentence = refusal(run, limits)) {
    say(*sentence);
    return kExitUsage;
  }
  warn(run, limits);

  DirectResult result = supervisor::direct_run(run);
  if (!flags.stream) {
    const bool delivered = write_all(STDOUT_FILENO, result.stdout_output.bytes) || errno == EPIPE;
    if (!delivered) result.delivery_error = errno;
    (void)write_all(STDERR_FILENO, result.stderr_output.bytes);  // nowhere else to say it
  }
  tell(run, result);
  return exit_code(result);
}

}  // namespace

int run_command(std::span<char* const> arguments) {
  try {
    return run_or_throw(arguments);
  } catch (const Refused& refused) {
    say(refused.what());
    return kExitUsage;
  }
}

}  // namespace pyplaypen::cli
