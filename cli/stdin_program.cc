#include "cli/stdin_program.h"

#include <algorithm>
#include <string_view>

namespace pyplaypen::cli {
namespace {

// Of an interpreter's one-letter options: those that bring the program along or need none, and those
// that take the next argument. Long options: those that bring a program or need none.
struct Interpreter {
  std::string_view prefix;  // of the file name; digits and dots may follow
  std::string_view program_letters;
  std::string_view value_letters;
  std::string_view program_options;  // space before and after each
};

constexpr Interpreter kInterpreters[] = {
    {"python", "cmVh?", "WX", " --version --help --help-all --help-env --help-xoptions "},
    {"pypy", "cmVh?", "WX", " --version --help "},
    {"sh", "c", "oO", " --version --help "},
    {"bash", "c", "oO", " --version --help "},
    {"dash", "c", "oO", ""},
    {"ksh", "c", "oO", " --version "},
    {"zsh", "c", "oO", " --version --help "},
    {"node", "epvh", "r", " --eval --print --version --help "},
    {"perl", "eEvVh", "", " --version --help "},
    {"ruby", "evh", "rI", " --version --help "},
};

const Interpreter* interpreter_of(std::string_view program) {
  std::string_view name = program.substr(program.rfind('/') + 1);
  const size_t end = name.find_last_not_of("0123456789.");
  name = name.substr(0, end == std::string_view::npos ? 0 : end + 1);
  const auto* const found =
      std::ranges::find(kInterpreters, name, [](const Interpreter& known) { return known.prefix; });
  return found == std::end(kInterpreters) ? nullptr : found;
}

enum class Meaning { kProgram, kStdin, kFlag, kFlagWithValue };

Meaning meaning_of(std::string_view argument, const Interpreter& interpreter) {
  if (argument == "-") return Meaning::kStdin;
  if (argument.size() < 2 || (argument[0] != '-' && argument[0] != '+')) return Meaning::kProgram;
  if (argument.starts_with("--")) {
    std::string word(" ");
    word.append(argument.substr(0, argument.find('='))).append(" ");
    return interpreter.program_options.find(word) != std::string_view::npos ? Meaning::kProgram
                                                                             : Meaning::kFlag;
  }
  for (size_t i = 1; i < argument.size(); ++i) {
    if (interpreter.program_letters.find(argument[i]) != std::string_view::npos)
      return Meaning::kProgram;
    if (interpreter.value_letters.find(argument[i]) != std::string_view::npos)
      return i + 1 == argument.size() ? Meaning::kFlagWithValue : Meaning::kFlag;
    // `sh -s name`: the program is read from stdin, whatever follows.
    if (argument[i] == 's' && interpreter.prefix.ends_with("sh")) return Meaning::kStdin;
  }
  return Meaning::kFlag;
}

}  // namespace

bool reads_program_from_stdin(std::span<const std::string> argv) {
  const Interpreter* const interpreter = argv.empty() ? nullptr : interpreter_of(argv[0]);
  if (interpreter == nullptr) return false;
  for (size_t i = 1; i < argv.size(); ++i) {
    switch (meaning_of(argv[i], *interpreter)) {
      case Meaning::kProgram: return false;
      case Meaning::kStdin: return true;
      case Meaning::kFlag: break;
      case Meaning::kFlagWithValue: ++i; break;
    }
  }
  return true;
}

}  // namespace pyplaypen::cli
