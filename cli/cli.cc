#include "cli/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>

#include "cli/commands/batch.h"
#include "cli/commands/enforcement.h"
#include "cli/commands/exec.h"
#include "cli/commands/run.h"
#include "cli/exit_codes.h"
#include "cli/first_process.h"
#include "cli/message.h"
#include "pyplaypen/limits.h"

namespace pyplaypen::cli {
namespace {

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(std::span<char* const> arguments);  // from its own name on; may throw
};

// A new subcommand is a row here and a file in commands/.
constexpr Command kCommands[] = {
    {"run", "run a command under limits", run_command},
    {"exec", "evaluate Python code, print the result as JSON", exec_command},
    {"batch", "evaluate many, JSON lines in and out", batch_command},
    {"enforcement", "say what enforces each limit on this machine", enforcement_command},
};

std::string help() {
  std::string text = "usage: pyplaypen COMMAND [options]\n\n"
                     "Runs Python snippets and commands under kernel-enforced limits.\n\ncommands:\n";
  for (const Command& command : kCommands) {
    std::string name(command.name);
    name.resize(14, ' ');
    text.append("  ").append(name).append(command.summary).append("\n");
  }
  text.append("\n`pyplaypen COMMAND --help` tells more. `pyplaypen --version` prints the version.\n");
  return text;
}

std::string names() {
  std::string text;
  for (const Command& command : kCommands) text.append(" ").append(command.name);
  return text;
}

int print(std::string_view text) { return write_all(1, text) ? kExitOk : kExitNotRun; }

int dispatch(std::span<char* const> arguments) {
  if (arguments.size() < 2) {
    say("no command given; the commands are" + names() + " (see pyplaypen --help)");
    return kExitUsage;
  }
  const std::string_view name = arguments[1];
  if (name == "--help" || name == "-h") return print(help());
  if (name == "--version") return print("pyplaypen " PYPLAYPEN_VERSION "\n");
  const auto* const command = std::ranges::find(kCommands, name, &Command::name);
  if (command == std::end(kCommands)) {
    say("unknown command '" + std::string(name) + "'; the commands are" + names() +
        " (see pyplaypen --help)");
    return kExitUsage;
  }
  return command->run(arguments.subspan(1));
}

// One that was closed would be the next file's that is opened, and be read and written for it. O_PATH keeps
// its number and refuses both, as a closed one does.
void occupy_closed_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/", O_PATH | O_DIRECTORY);  // the lowest that is free: this one
}

}  // namespace

int run(std::span<char* const> arguments) {
  occupy_closed_descriptors();
  // A reader who went away is then an error of the write, told where it matters.
  ::signal(SIGPIPE, SIG_IGN);
  try {
    if (const auto exit = mind_if_first_process()) return *exit;
    return dispatch(arguments);
  } catch (const LimitError& error) {
    say(error.what());
    return kExitUsage;
  } catch (const std::exception& error) {
    say(error.what());
    return kExitNotRun;
  }
}

}  // namespace pyplaypen::cli
