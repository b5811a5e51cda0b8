// What a call comes back with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pyplaypen/artifact.h>

namespace pyplaypen {

// Why a call of execute ended with an error; docs/results.md says when each is given.
enum class ErrorType {
  kSyntax,
  kRuntime,
  kSerialization,
  kTimeout,
  kCpuLimit,
  kMemoryLimit,
  kProcessLimit,
  kOpenFilesLimit,
  kArtifactLimit,
  kReturnLimit,
  kBusy,
  kCancelled,
  kCrash,
  kProtocol,
  kExtension,
  kInternal,
};

std::string_view error_type_name(ErrorType type);  // "syntax", "cpu_limit", ...

struct ErrorInfo {
  ErrorType type = ErrorType::kInternal;
  std::string message;                 // one line or a few, for a person
  std::string traceback;               // with source lines; empty: none
  std::optional<int64_t> line;         // of the code, from 1
  std::optional<int64_t> exit_code;    // of SystemExit
  std::optional<int> signal;           // that ended the process
  std::string value_type;              // serialization: of the value without a projection
  std::string value_repr;              // and its repr, cut

  bool operator==(const ErrorInfo&) const = default;
};

struct Usage {
  double wall_ms = 0;          // from the call to its answer
  double queue_ms = 0;         // of them, waiting for a slot and a child
  double cpu_ms = 0;           // of the call's leader and what it waited for, as that process says
  uint64_t max_rss_bytes = 0;  // the same

  bool operator==(const Usage&) const = default;
};

// One stream: what was kept, and what is known of all of it.
struct Output {
  std::string bytes;           // at most the limit, then the mark "\n[truncated]\n" if it was cut
  uint64_t total_bytes = 0;    // seen
  std::string sha256;          // of everything seen, hexadecimal
  bool truncated = false;

  bool operator==(const Output&) const = default;
};

// What a call took, for the audit, in ms: waiting for a slot; handing over; the child's set-up where
// no spare was ready; evaluation; collecting artifacts; ending the tree.
struct StageTimes {
  double queue_ms = 0;
  double dispatch_ms = 0;
  double confine_ms = 0;
  double evaluate_ms = 0;
  double collect_ms = 0;
  double teardown_ms = 0;

  bool operator==(const StageTimes&) const = default;
};

struct Result {
  std::string request_id;
  std::string return_value = "null";  // JSON text, valid, one value
  std::optional<ErrorInfo> error;     // absent: status ok
  Output stdout_output;
  Output stderr_output;
  std::vector<Artifact> artifacts;
  std::vector<std::string> skipped;   // FIFOs, sockets, devices: not collected
  std::string artifact_root;          // absolute; empty when there are no artifacts
  Usage usage;
  StageTimes stages;

  bool ok() const { return !error; }
  bool operator==(const Result&) const = default;
};

// One line of JSON; the keys are those of docs/results.md. Bytes of the streams that are not UTF-8
// become U+FFFD.
std::string to_json(const Result& result);

}  // namespace pyplaypen
