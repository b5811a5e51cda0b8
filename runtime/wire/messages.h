// What the processes say to each other, as values. The bytes: docs/protocol.md and codec.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pyplaypen/limits.h"

namespace pyplaypen::wire {

// name -> value, as bytes; a later equal name has won already.
using Environment = std::map<std::string, std::string>;

// How a call's code ended, as its own process tells it. A subset of the public error types: the
// others are the supervisor's to find.
enum class ReportStatus : uint8_t {
  kOk,
  kSyntax,
  kRuntime,
  kSerialization,
  kMemoryLimit,
  kProcessLimit,
  kOpenFilesLimit,
  kReturnLimit,
  kExtension,
  kInternal,
};

// supervisor -> spare: one call of execute.
struct Request {
  std::string request_id;
  std::string code;             // source bytes as given: any encoding, NUL included
  std::string extra_json;       // JSON text for the provider's ctx["extra"]
  std::optional<Environment> environment;  // whole environment; absent: the one the spare has already
  Limits limits;

  bool operator==(const Request&) const = default;
};

// spare -> supervisor: its only answer. Hostile: the sender ran user code.
struct Report {
  ReportStatus status = ReportStatus::kOk;
  std::string value_json = "null";  // JSON text; only kOk has another than null
  std::string message;
  std::string traceback;            // empty: none
  std::optional<int64_t> line;      // of the user's source
  std::optional<int64_t> exit_code; // of SystemExit
  std::string value_type;           // kSerialization: of the value that has no projection
  std::string value_repr;
  uint64_t cpu_microseconds = 0;    // of this process
  uint64_t max_rss_bytes = 0;

  bool operator==(const Report&) const = default;
};

}  // namespace pyplaypen::wire
