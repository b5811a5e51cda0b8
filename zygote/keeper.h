// A slot's keeper: forks the slot's calls one at a time, and ends all that is left of each.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "runtime/sys/unique_fd.h"
#include "runtime/wire/messages.h"
#include "zygote/interpreter.h"

namespace pyplaypen::zygote {

// What a keeper takes over from the zygote at its fork.
struct KeeperPlan {
  const wire::Setup& setup;
  wire::OpenKeeper slot;
  sys::UniqueFd channel;        // to the supervisor
  sys::UniqueFd uid_claim;      // holds the slot's UID; empty where it has none
  sys::UniqueFd zygote_alive;   // read end of a pipe whose writer is the zygote: end of file = it died
  Interpreter* interpreter;  // null: CPython has not been started, only commands run
  bool user_namespace = false;  // unshared already, maps written
};

// Serves the supervisor until its end of the channel, or the zygote, is gone; then ends the slot's
// calls, removes its directories and exits. Runs in: keeper, from its fork on; one thread.
[[noreturn]] void keep(const KeeperPlan& plan);

}  // namespace pyplaypen::zygote
