// Calls of execute, one at a time and many.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/item.h"
#include "bench/sandboxes.h"

namespace pyplaypen::bench {

// What the results say of the stages of their calls: item -> each call's.
using Stages = std::map<std::string, std::vector<StageTimes>>;

// One call, the machine left alone before it. The snippets are the files of `directory`. `stages` must
// outlive the plan.
void add_calls(Plan& plan, const Mode& mode, Sandboxes& sandboxes, const std::string& directory, Stages& stages);
// What a call costs by the size of its code, value and output.
void add_sweeps(Plan& plan, const Mode& mode, Sandboxes& sandboxes);
// Calls per second, 1 to 8 at a time: one thread that polls, and as many threads.
void add_sustained(Plan& plan, const Mode& mode, Sandboxes& sandboxes);

}  // namespace pyplaypen::bench
