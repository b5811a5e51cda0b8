// What changes with the number of calls, and what a spare takes. Measured once, after the rounds.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/sandboxes.h"

namespace pyplaypen::bench {

// `calls` calls back to back through one Sandbox: a row for each fiftieth of them.
nlohmann::json measure_growth(int calls);

// Memory of the processes behind a Sandbox at rest: "zygote", "keeper" and "spare", kB.
nlohmann::json measure_memory(Sandbox& sandbox);

}  // namespace pyplaypen::bench
