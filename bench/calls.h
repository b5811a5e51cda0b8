// Calls of execute, one at a time and many.
#pragma once

#include "bench/item.h"
#include "bench/sandboxes.h"

namespace pyplaypen::bench {

// One call, the machine left alone before it. The snippets are the files of `directory`.
void add_calls(Plan& plan, const Mode& mode, Sandboxes& sandboxes, const std::string& directory);
// What a call costs by the size of its code, value and output.
void add_sweeps(Plan& plan, const Mode& mode, Sandboxes& sandboxes);
// Calls per second, 1 to 8 at a time: one thread that polls, and as many threads.
void add_sustained(Plan& plan, const Mode& mode, Sandboxes& sandboxes);

}  // namespace pyplaypen::bench
