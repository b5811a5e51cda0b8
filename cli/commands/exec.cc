#include "cli/commands/exec.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/exit_codes.h"
#include "cli/message.h"
#include "cli/sandbox_flags.h"

namespace pyplaypen::cli {
namespace {

struct ExecFlags {
  SandboxFlags sandbox;
  std::string code;
  std::string file;
  bool pretty = false;
};

// By read(2): a stream takes a failure in the middle, or a directory, for the end.
std::string read_all(int fd, const std::string& name) {
  std::string text;
  char chunk[65536];
  for (;;) {
    const ssize_t got = ::read(fd, chunk, sizeof chunk);
    if (got == 0) return text;
    if (got > 0) {
      text.append(chunk, static_cast<size_t>(got));
    } else if (errno == EAGAIN) {  // somebody we share it with made it non-blocking
      pollfd ready{fd, POLLIN, 0};
      (void)::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      throw Refused(name + " cannot be read: " + std::strerror(errno));
    }
  }
}

std::string read_standard_input() { return read_all(STDIN_FILENO, "standard input"); }

std::string read_code(const ExecFlags& flags, bool has_code) {
  if (!flags.file.empty()) {
    if (has_code) throw Refused("give either CODE or --file, not both");
    if (flags.file == "-") return read_standard_input();
    const int file = ::open(flags.file.c_str(), O_RDONLY | O_CLOEXEC);  // until we end
    if (file < 0) throw Refused("--file " + flags.file + " cannot be read: " + std::strerror(errno));
    return read_all(file, "--file " + flags.file);
  }
  if (!has_code) throw Refused("no code given: pass it as an argument, with --file F, or as - to read standard input");
  return flags.code == "-" ? read_standard_input() : flags.code;
}

void print(const Result& result, bool pretty) {
  std::string text = to_json(result);
  // A document would lose what numbers JSON text can have and a double cannot, so only the rest of
  // the result is laid out by one; see wire/json_text.h.
  if (pretty) {
    Result rest = result;
    rest.return_value = "null";
    const std::string laid_out = nlohmann::ordered_json::parse(to_json(rest)).dump(2);
    static constexpr std::string_view kKey = "\"return_value\": null";
    text = laid_out;
    text.replace(text.find(kKey), kKey.size(), "\"return_value\": " + result.return_value);
  }
  if (!write_all(STDOUT_FILENO, text + "\n")) throw Refused("the result cannot be written");
}

int run_exec(const ExecFlags& flags, bool has_code) {
  std::string code;
  SandboxOptions options;
  Context context;
  Limits limits;
  try {
    code = read_code(flags, has_code);
    options = sandbox_options(flags.sandbox, 1);
    options.spares = 0;
    context = context_from(flags.sandbox);
    limits = limits_from(flags.sandbox, options);
  } catch (const std::exception& error) {
    say(error.what());
    return kExitUsage;
  }
  try {
    Sandbox sandbox(options);
    const Result result = sandbox.execute(code, context, limits);
    print(result, flags.pretty);
    return result.ok() ? kExitOk : kExitErrorResult;
  } catch (const ExtensionError& error) {
    Result result;
    result.error.emplace();
    result.error->type = ErrorType::kExtension;
    result.error->message = error.what();
    print(result, flags.pretty);
    return kExitErrorResult;
  } catch (const std::exception& error) {
    say(error.what());
    return kExitNotRun;
  }
}

}  // namespace

int exec_command(std::span<char* const> arguments) {
  ExecFlags flags;
  CLI::App app("Evaluates Python code in a fresh child and prints the result as one line of JSON.",
               "pyplaypen exec");
  app.footer("Exit status: 0 the code succeeded, 1 it did not, 2 usage or a limit refused, 125 not run.");
  const CLI::Option* const code = app.add_option("CODE", flags.code, "the code, or - for standard input");
  app.add_option("--file", flags.file, "read the code from this file (- for standard input)");
  app.add_flag("--pretty", flags.pretty, "lay the result out for people");
  add_sandbox_flags(app, flags.sandbox);
  if (const auto exit = parse_or_tell(app, arguments)) return *exit;
  return run_exec(flags, code->count() > 0);
}

}  // namespace pyplaypen::cli
