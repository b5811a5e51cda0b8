// A call in its own process, from request to report.
#pragma once

#include <sys/types.h>

#include <string>

#include "runtime/python/captured.h"
#include "runtime/python/extensions.h"
#include "runtime/wire/messages.h"

namespace pyplaypen::python {

struct CallPlace {
  const std::string& workspace;          // the current directory; the last entry of sys.path
  const std::string& private_directory;  // writable, not collected; exists
  pid_t leader = 0;               // the process that is to report
};

// Evaluates the request's code and finishes as a Python script does. Everything that the code can
// do to the interpreter ends in the report; the process itself it can still end or crash. Returns
// in the leader only: a process that the code forked exits in here.
//
// The value is projected as soon as it is there, before threads are joined and exit functions run:
// these may change it, and what the last expression was is what it was when it was evaluated.
//
// Runs in: child, once, on the main thread, GIL held, after settle() and with the limits in force.
// Afterwards the process can only leave by _exit. Takes the request's code as it is: it must stay
// alive and unchanged until then.
wire::Report run_call(Captured& captured, const Extensions& extensions,
                      const wire::Request& request, const CallPlace& place) noexcept;

}  // namespace pyplaypen::python
