// The duties of a container's first process, beside those of the command.
#pragma once

#include <optional>

namespace pyplaypen::cli {

// As pid 1, this process becomes a small init: it hands signals on, which the kernel keeps from a pid 1
// without handlers, and reaps every orphan of the container, ours (a zygote, and keepers of a killed one)
// and others'. The command goes on in a child, where this returns nothing; in the parent it returns the
// exit status once the command has ended. In any other process it does nothing.
std::optional<int> mind_if_first_process();

}  // namespace pyplaypen::cli
