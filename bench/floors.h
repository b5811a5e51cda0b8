// What the goals are ratios of: the price of the same work without us, measured in the same run.
#pragma once

#include "bench/item.h"

namespace pyplaypen::bench {

void add_floors(Plan& plan, const Mode& mode);
// Other programs that start a command under limits, ours among them, and `timeout`.
void add_commands(Plan& plan, const Mode& mode);

// Evaluated by execute and, with json.dumps and json.loads, by a plain CPython: 1 MB as JSON.
inline constexpr char kMegabyteList[] = "[[i, i / 7, 'item %d' % i, None] for i in range(22000)]";

// How long a machine is left alone before a sample of something that does not come back to back, so
// that what the sample before left to do is done.
inline constexpr std::chrono::milliseconds kPause{10};

}  // namespace pyplaypen::bench
