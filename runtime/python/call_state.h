// What of the interpreter's state must be a call's own and not the zygote's.
#pragma once

#include <string>

#include "runtime/python/captured.h"
#include "runtime/wire/messages.h"

namespace pyplaypen::python {

// SIGPIPE and SIGXFSZ get handlers that do nothing, so that the failing write raises; unlike
// SIG_IGN they are reset by an exec. SIGINT keeps Python's handler. Runs in: zygote, once.
void install_signal_handlers();

// What settle() changes, each empty where its module is not loaded.
struct SharedState {
  PyRef random_generator;  // random._inst, behind the functions of the module
  PyRef numpy_seed;        // numpy.random.seed
  PyRef tempfile;          // the module
};

// Runs in: zygote, after the imports; nothing is imported. Throws std::runtime_error.
SharedState find_shared_state();

// Draws new seeds for `random` and numpy's global generator and forgets tempfile's directory. Returns
// what failed, empty when nothing did. Runs in: child, after the warm-up and before its request, so
// that no two children share a seed and no call waits.
std::string settle(const Captured& captured, const SharedState& state);

// Makes this the whole environment, for C and for os.environ, and takes over its time zone. False,
// with what failed in errno, on a name that cannot be one. Runs in: child, before user code.
bool apply_environment(const Captured& captured, const wire::Environment& environment);

// The last entry of sys.path, so that the code's own modules can be imported and none of them hides
// one of Python's. False with a Python exception set. Runs in: child, before user code.
bool add_import_directory(const std::string& directory);

}  // namespace pyplaypen::python
