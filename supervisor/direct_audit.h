// The audit record of a directly run command.
#pragma once

#include <string>

#include "supervisor/direct_run.h"

namespace pyplaypen::supervisor {

// One line of JSON, "event" first; docs/audit.md. Hashes where the run asked for them.
std::string audit_record(const DirectRun& run, const DirectResult& result);

}  // namespace pyplaypen::supervisor
