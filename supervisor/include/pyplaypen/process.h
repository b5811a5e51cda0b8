// Commands under the limits of a Sandbox.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pyplaypen/result.h>

namespace pyplaypen {

using Environment = std::map<std::string, std::string>;

// What a call reads as its standard input.
struct StandardInput {
  enum class Kind { kEmpty, kBytes, kFile, kInherit } kind = Kind::kEmpty;
  std::string text;  // the bytes, or the file's path
};

enum class OutputStream { kStdout, kStderr };
enum class StderrTo { kStderr, kStdout };

struct ProcessOptions {
  std::filesystem::path cwd;                // empty: this process's; its owner and modes stay as they are
  std::optional<Environment> environment;   // the whole environment; absent: the Sandbox's
  std::vector<std::string> write_paths;     // under confine_writes, beside cwd and the private TMPDIR
  StderrTo stderr_to = StderrTo::kStderr;   // kStdout: one stream, in the order of the writes
  StandardInput stdin_source;
  // Gets output as it comes, within the limits, in the calling thread. What it gets is kept, too.
  std::function<void(OutputStream, std::string_view)> sink;
};

struct ProcessResult {
  enum class Status { kOk, kTimeout, kBusy, kCancelled, kInternal };

  Status status = Status::kOk;      // kOk: it ran to its own end, whatever its returncode
  std::optional<int> returncode;    // its exit status, or minus the signal that ended it
  bool timed_out = false;
  std::string message;              // why it is not kOk, or which limit ended it; else empty
  int start_error = 0;              // errno where it could not be started at all (kInternal)
  Output stdout_output;
  Output stderr_output;
  Usage usage;

  bool operator==(const ProcessResult&) const = default;
};

std::string_view process_status_name(ProcessResult::Status status);  // "ok", "timeout", ...

}  // namespace pyplaypen
