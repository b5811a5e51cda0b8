// An exception as a report shows it.
#pragma once

#include "runtime/python/captured.h"
#include "runtime/python/source.h"
#include "runtime/wire/messages.h"

namespace pyplaypen::python {

// Sets the report's message, traceback and line; the status is classify()'s. Bounded in size and,
// apart from the exceptions' own __str__, in time, whatever the number of frames. Frames that are
// not the user's doing (the event loop under a top-level await, our own) are left out at the top.
//
// Runs user code (__str__, attributes); what it raises is swallowed.
void describe(const Captured& captured, const Source& source, PyObject* exception,
              wire::Report& report);

}  // namespace pyplaypen::python
