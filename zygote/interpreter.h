// CPython in this process: started once, warm, with the user's modules imported.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "runtime/python/call_state.h"
#include "runtime/python/captured.h"
#include "runtime/python/extensions.h"
#include "runtime/python/fork_hooks.h"
#include "runtime/wire/messages.h"

namespace pyplaypen::zygote {

struct Interpreter {
  python::Captured captured;
  python::Extensions extensions;
  python::ForkHooks fork_hooks;
  python::SharedState shared_state;
};

// Starts CPython as `setup` says: interpreter or virtual environment, UTF-8, paths; imports what it
// names, with `import_as` as effective user where given, so that nothing is read or written that a
// call could not. Fills `ready` and, unless it failed, `interpreter`. Runs in: zygote, once.
wire::Ready start_python(const wire::Setup& setup, std::optional<uid_t> import_as,
                         std::optional<gid_t> import_gid, Interpreter& interpreter);

}  // namespace pyplaypen::zygote
