// Which limit an exception that left the code is the sign of.
#pragma once

#include "runtime/python/py_ref.h"
#include "runtime/wire/messages.h"

namespace pyplaypen::python {

// kMemoryLimit, kProcessLimit or kOpenFilesLimit, else kRuntime. Looks at the exception, at what it
// was raised from, and at the members of a group when all say the same. Where the exception alone
// cannot tell (EAGAIN, "can't start new thread") it tries whether a process or a thread's stack can
// be had now, so it must be called while the call's processes and threads still run, and with
// Captured::reserve released.
//
// Runs user code (__str__) and swallows what it raises.
wire::ReportStatus classify(PyObject* exception);

}  // namespace pyplaypen::python
