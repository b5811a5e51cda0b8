// The structured record of a call.
#pragma once

#include <string>
#include <vector>

#include "pyplaypen/sandbox.h"

namespace pyplaypen::supervisor {

// One line of JSON: what ran under which limits, how it ended, what enforced what. No code, no output
// and no value is in it, only their sizes and hashes.
std::string audit_record(const Result& result, const Limits& limits, const Enforcement& enforcement);

// The same of a command: "event" is "process_execution", and its argv is in it.
std::string audit_record(const std::vector<std::string>& argv, const ProcessResult& result,
                         const Limits& limits, const Enforcement& enforcement);

}  // namespace pyplaypen::supervisor
