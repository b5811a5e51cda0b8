// A call's whole life after the fork from its keeper.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "runtime/sys/unique_fd.h"
#include "runtime/wire/messages.h"
#include "zygote/interpreter.h"
#include "zygote/place.h"

namespace pyplaypen::zygote {

// Everything that was decided before the fork. Descriptors and what is pointed to are the keeper's.
struct ChildPlan {
  int channel = -1;      // to the supervisor
  int null_device = -1;
  int stdout_pipe = -1;
  int stderr_pipe = -1;
  int work = -1;         // the workspace
  int ruleset = -1;      // Landlock; -1: none
  std::optional<Owner> drop_to;  // absent: stay who we are
  bool in_user_namespace = false;  // where `drop_to` is who it is
  bool count_keeper = false;     // RLIMIT_NPROC counts the keeper, too
  uint64_t mapped_bytes = 0;     // of the warm interpreter
  Interpreter* interpreter = nullptr;
  wire::WarmUp warm_up = wire::WarmUp::kYes;
  const Place* place = nullptr;
  const wire::Environment* private_environment = nullptr;  // HOME, TMPDIR and the like, unless the call sets them
};

// Confines itself, warms up, serves one request and leaves by _exit. Runs in: child.
[[noreturn]] void run_child(const ChildPlan& plan);

}  // namespace pyplaypen::zygote
