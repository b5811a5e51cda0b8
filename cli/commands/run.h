// pyplaypen run: one command under limits.
#pragma once

#include <span>

namespace pyplaypen::cli {

// `arguments` from "run" on. Throws LimitError for a refused limit, other exceptions for a command that
// could not be run.
int run_command(std::span<char* const> arguments);

}  // namespace pyplaypen::cli
