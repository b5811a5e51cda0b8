// pyplaypen exec: one call, its result as a line of JSON.
#pragma once

#include <span>

namespace pyplaypen::cli {

// `arguments` from the subcommand's own name on; gives the exit code.
int exec_command(std::span<char* const> arguments);

}  // namespace pyplaypen::cli
