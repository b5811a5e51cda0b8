// pyplaypen enforcement: what enforces each limit on this machine.
#pragma once

#include <span>

namespace pyplaypen::cli {

// `arguments` from the subcommand's own name on; gives the exit code.
int enforcement_command(std::span<char* const> arguments);

}  // namespace pyplaypen::cli
