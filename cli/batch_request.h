// One input line of batch as a call's arguments.
#pragma once

#include <optional>
#include <string>

#include "pyplaypen/sandbox.h"

namespace pyplaypen::cli {

struct BatchRequest {
  std::string id_json;                // as it goes back; the line's number where none was given
  std::string code;
  Context context;
  Limits limits;
  std::optional<ErrorInfo> refusal;   // set: the line is answered with this, and nothing is run
};

// Never throws for what the line holds. `defaults` and `limits` are what the command line asked for.
BatchRequest parse_batch_line(std::string_view line, uint64_t number, const Context& defaults,
                              const Limits& limits);

}  // namespace pyplaypen::cli
