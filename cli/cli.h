// The command's entry: picks the subcommand.
#pragma once

#include <span>

namespace pyplaypen::cli {

// `arguments` as main got them, the program's name first. Returns the exit code; never throws.
int run(std::span<char* const> arguments);

}  // namespace pyplaypen::cli
