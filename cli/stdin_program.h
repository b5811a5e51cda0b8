// Tells a command that would read its program from standard input.
#pragma once

#include <span>
#include <string>

namespace pyplaypen::cli {

// True for a bare interpreter ("python3", "bash -x") and for one that is given "-" (or "sh -s"). Looks
// at the known interpreters' own options and no further; false for every other program.
bool reads_program_from_stdin(std::span<const std::string> argv);

}  // namespace pyplaypen::cli
