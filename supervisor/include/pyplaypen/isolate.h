// A callable or a program in a child of its own, isolated by namespaces, rlimits and Landlock, without
// a Sandbox: nothing is kept warm, nothing stays.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pyplaypen/error.h>
#include <pyplaypen/landlock.h>
#include <pyplaypen/namespaces.h>
#include <pyplaypen/privilege.h>
#include <pyplaypen/process.h>
#include <pyplaypen/result.h>

namespace pyplaypen {

struct IsolateOptions {
  // Without CAP_SYS_ADMIN a user namespace is added around any others.
  Namespaces namespaces = kDefaultNamespaces;
  Strictness strictness = Strictness::kLenient;  // kStrict: throws Refused instead of going without
  MapTo map_to = MapTo::kRoot;
  std::string hostname;  // empty: as outside; asks for kUts as well
  ProcMount proc = ProcMount::kAuto;

  // Not in force here: the child alone restricts itself, so that it can be used again and again. Its
  // paths are opened before the child is there; a relative one starts at this process's directory.
  std::optional<LandlockRuleset> landlock;
  // memory_bytes of a callable is counted on top of what this process has mapped. process_count counts
  // the call alone in a user namespace, else all of the user's tasks, and is not enforced for root.
  ResourceLimits limits;
  std::optional<double> timeout_seconds;  // of the whole tree, from its start on

  // run_argv: where it runs and its whole environment; absent: this process's.
  std::filesystem::path cwd;
  std::optional<Environment> environment;

  uint64_t stdout_bytes = 1 << 20;  // what is kept; the rest is counted
  uint64_t stderr_bytes = 1 << 20;

  // A sentence for each thing that was asked for and is gone without. Absent: stderr.
  std::function<void(std::string_view sentence)> note;
};

struct IsolateOutcome {
  enum class Status {
    kExited,    // of itself; exit_status tells
    kSignaled,  // a signal ended it
    kTimeout,   // it was killed with all it had started
    kFailed,    // it was not started, or its end is not known: error_number and message tell
  };

  bool ok = false;  // it exited with 0, and no exception escaped
  Status status = Status::kFailed;
  int exit_status = 0;   // kExited: what the program or callable returned; 1 after an exception
  int signal = 0;        // kSignaled
  int error_number = 0;  // errno of an escaped std::system_error; of what could not be started; else 0
  std::string message;   // of an escaped exception; why it was not started; else empty
  Output stdout_output;
  Output stderr_output;
  Usage usage;           // cpu_ms of the whole tree
  Namespaces namespaces; // that were in force
  std::vector<std::string> notes;  // what was given to `note`
};

// Both wait until nothing of the tree is alive any more: what the payload left running is killed when
// it ends. Standard input is empty. This process is as it was afterwards: no child that its wait
// functions see, no SIGCHLD, no handler, no descriptor. Any number of threads may call them. They
// throw Refused, std::system_error, std::runtime_error (a Landlock ruleset that cannot be had) and
// std::invalid_argument (an argv with NUL bytes).

// The program is looked up along the PATH of its environment. no_new_privs is set.
IsolateOutcome run_argv(const std::vector<std::string>& argv, const IsolateOptions& options = {});

// What run() is made of. The callable runs in a copy of this process made as fork(3) makes one: of its
// threads only the caller's is there, signals have their default actions, and descriptors are
// inherited, 0 to 2 excepted. What it returns is the exit status (its lowest eight bits). C and C++
// streams are flushed before and after. It shares no memory with this process: results leave by stdout,
// by the exit status, or through a descriptor.
IsolateOutcome run_function(const std::function<int()>& callable, const IsolateOptions& options = {});

// A callable that returns int, or nothing: then 0 stands for its return.
template <typename Callable>
  requires std::is_invocable_v<Callable&>
IsolateOutcome run(Callable&& callable, const IsolateOptions& options = {}) {
  if constexpr (std::is_void_v<std::invoke_result_t<Callable&>>) {
    return run_function([&callable] { return std::invoke(callable), 0; }, options);
  } else {
    return run_function([&callable] { return static_cast<int>(std::invoke(callable)); }, options);
  }
}

}  // namespace pyplaypen
