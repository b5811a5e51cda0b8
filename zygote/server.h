// The zygote's one loop: starts CPython when asked, opens keepers, reaps, ends with its host.
#pragma once

#include "runtime/sys/unique_fd.h"

namespace pyplaypen::zygote {

// Serves the supervisor on `channel` until it is gone; ends the keepers, removes the base directory
// and returns the exit status. Runs in: zygote, one thread.
int serve(sys::UniqueFd channel);

}  // namespace pyplaypen::zygote
