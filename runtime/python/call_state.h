// What of the interpreter's state must be a call's own and not the zygote's.
#pragma once

#include <string>

#include "runtime/python/captured.h"
#include "runtime/wire/messages.h"

namespace pyplaypen::python {

// SIGPIPE and SIGXFSZ get handlers that do nothing, so that the failing write raises; unlike
// SIG_IGN they are reset by an exec. SIGINT keeps Python's handler. Runs in: zygote, once.
void install_signal_handlers();

// Draws new seeds for `random` and numpy's global generator and forgets tempfile's directory, each
// where it is loaded; nothing is imported. Returns what failed, empty when nothing did. Runs in:
// child, after the warm-up and before its request, so that no two children share a seed and no call
// waits.
std::string settle(const Captured& captured);

// Makes this the whole environment, for C and for os.environ, and takes over its time zone. False,
// with what failed in errno, on a name that cannot be one. Runs in: child, before user code.
bool apply_environment(const Captured& captured, const wire::Environment& environment);

// The last entry of sys.path, so that the code's own modules can be imported and none of them hides
// one of Python's. False with a Python exception set. Runs in: child, before user code.
bool add_import_directory(const std::string& directory);

}  // namespace pyplaypen::python
