// The way into a slot's namespaces: the keeper goes in, the zygote writes the maps behind it.
#pragma once

#include <sys/types.h>

#include "pyplaypen/namespaces.h"
#include "runtime/sys/unique_fd.h"
#include "runtime/wire/messages.h"

namespace pyplaypen::zygote {

// Made before the fork; each side then uses its half.
class Entrance {
 public:
  Entrance(const wire::Setup& setup, const wire::OpenKeeper& slot);

  // Runs in: the keeper to be, first of all. Gives the namespaces that it is in then. For a pid
  // namespace it forks again and returns in the copy, which is pid 1 there and so the reaper of all that
  // the slot's calls leave; `warm`: there is a CPython to be told. Throws sys::Error for a namespace
  // that was asked for; one that would only count processes is gone without.
  Namespaces enter(bool warm);

  // Runs in: the zygote, as parent of `first`. The keeper's PID, which is another after a second fork.
  pid_t let_in(pid_t first);

 private:
  void fork_again(bool warm);

  const wire::Setup& setup_;
  const wire::OpenKeeper& slot_;
  Namespaces asked_;
  Namespaces wanted_;
  sys::UniqueFd from_keeper_;
  sys::UniqueFd to_zygote_;
  sys::UniqueFd from_zygote_;
  sys::UniqueFd to_keeper_;
};

}  // namespace pyplaypen::zygote
