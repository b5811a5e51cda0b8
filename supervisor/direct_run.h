// Runs one command as a child of this very process, without a zygote: what `pyplaypen run` does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pyplaypen/landlock.h"
#include "pyplaypen/limits.h"
#include "pyplaypen/result.h"
#include "runtime/jail/launch.h"
#include "supervisor/direct_policy.h"
#include "supervisor/minded.h"
#include "supervisor/output.h"

namespace pyplaypen::supervisor {

enum class StdinSource { kEmpty, kInherited };
enum class OutputMode { kKept, kStreamed };  // streamed: to this process's own stdout and stderr
enum class Streams { kApart, kMerged };      // merged: all of it is stdout

struct DirectRun {
  std::vector<std::string> argv;
  std::vector<std::string> environment;    // "NAME=value" each; TMPDIR says where the private one is made
  Limits limits;                           // checked by the caller
  std::optional<jail::Identity> identity;  // from child_identity()
  WriteSet writes = WriteSet::kUnconfined;  // confined: to the current directory, TMPDIR and /dev/null
  NamespaceRequest namespaces;              // asking for none: everything stays as it is
  StdinSource stdin_source = StdinSource::kEmpty;
  OutputMode output = OutputMode::kKept;
  Streams streams = Streams::kApart;
  Hashing hashing = Hashing::kNone;
  int landlock_abi = pyplaypen::landlock_abi();  // tests: less, to act as an older kernel does
};

struct DirectResult {
  enum class Status { kEnded, kTimeout, kNotStarted };

  Status status = Status::kEnded;
  int wait_status = 0;          // kEnded; man 2 wait
  bool cpu_limit = false;       // kEnded: by cpu_seconds, also where the command ignored SIGXCPU
  jail::SetupReport failure;    // kNotStarted
  Output stdout_output;         // what was kept; counts also of what was streamed
  Output stderr_output;
  bool mid_line = false;        // stderr (stdout, where merged) stopped within a line
  int delivery_error = 0;       // errno of a stream that could not be passed on; 0: none
  Usage usage;                  // of the whole tree, as far as it was waited for
  Namespaces namespaces;        // in force
  std::vector<std::string> notes;  // a sentence for each thing that was asked for and gone without
};

// Ends with the command itself, not with the last holder of its output: its tree is then killed and
// reaped, and its TMPDIR removed. SIGINT, SIGTERM, SIGHUP and SIGQUIT that arrive meanwhile go to the
// command's process group. Without namespaces, makes the calling process a subreaper and, from Landlock ABI 6, confines
// its signals to its descendants, both for good: for a process that does nothing else, and has one
// thread. Throws Refused, sys::Error or std::runtime_error when the command could not be tried.
DirectResult direct_run(const DirectRun& run);

}  // namespace pyplaypen::supervisor
