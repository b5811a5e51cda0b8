// The end of a Python process that does not finalize its interpreter.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/python/captured.h"

namespace pyplaypen::python {

// What `python file.py` does after the last line, in its order: joins non-daemon threads, runs the
// exit functions, lets go of the code's globals (so that their destructors run and their open files
// are written), flushes sys.stdout and sys.stderr, those that the process began with, and C's
// stdio. Takes as long as the code's threads and handlers make it. What they raise is printed, as
// Python does. Returns with no Python exception set. Runs in: child, last.
void finish(const Captured& captured);

// The parts of finish() that change nothing, for their pages. Runs in: child, with empty streams.
void warm_up_finish(const Captured& captured);

// For a process that user code forked and that came to the end of the code: it finishes as a Python
// script would, with this exception (empty: none) having left the code, and never reports.
[[noreturn]] void leave_as_copy(const Captured& captured, PyRef exception);

// The exit status that SystemExit asks for, and the text that Python prints for it (empty: none).
struct ExitRequest {
  int64_t status = 0;
  std::string text;
};
ExitRequest exit_request(PyObject* system_exit);

}  // namespace pyplaypen::python
