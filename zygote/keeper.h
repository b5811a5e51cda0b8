// A slot's keeper: forks the slot's calls one at a time, and ends all that is left of each.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "pyplaypen/namespaces.h"
#include "runtime/sys/unique_fd.h"
#include "runtime/wire/messages.h"
#include "zygote/entrance.h"
#include "zygote/interpreter.h"

namespace pyplaypen::zygote {

// What a keeper takes over from the zygote at its fork.
struct KeeperPlan {
  const wire::Setup& setup;
  wire::OpenKeeper slot;
  sys::UniqueFd channel;        // to the supervisor
  sys::UniqueFd uid_claim;      // holds the slot's UID; empty where it has none
  std::vector<sys::UniqueFd> cgroup;  // the slot's, to be entered; see jail/cgroup.h
  sys::UniqueFd zygote_alive;   // read end of a pipe whose writer is the zygote: end of file = it died
  Interpreter* interpreter;  // null: CPython has not been started, only commands run
  Namespaces namespaces;        // that it is in, beside the zygote's; keep() fills this in
  bool own_shm = false;         // /dev/shm is the slot's alone; the same
  sys::UniqueFd proc;           // /proc as the supervisor sees it; the same
  sys::UniqueFd message_queues;  // of an IPC namespace of its own; the same
};

// Serves the supervisor until its end of the channel, or the zygote, is gone; then ends the slot's
// calls, removes its directories unless the supervisor is still there, and exits. Goes through the entrance first. Runs in: keeper, from its
// fork on; one thread.
[[noreturn]] void keep(KeeperPlan& plan, Entrance& entrance);

}  // namespace pyplaypen::zygote
