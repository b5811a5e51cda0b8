// pyplaypen batch: JSON lines in, JSON lines out, many calls on one Sandbox.
#pragma once

#include <span>

namespace pyplaypen::cli {

// `arguments` from the subcommand's own name on; gives the exit code.
int batch_command(std::span<char* const> arguments);

}  // namespace pyplaypen::cli
