// Tells a stack overflow from other segmentation faults.
#pragma once

#include "runtime/wire/messages.h"

namespace pyplaypen::python {

using wire::kStackOverflowHint;

// Installs a SIGSEGV handler on a signal stack of its own, for the calling thread and the processes
// forked from it. When the fault lies next to the stack pointer, it writes kStackOverflowHint to
// `fd`; the process then dies by SIGSEGV as it would have. An exec or a handler of user code's ends
// this. Takes `fd` as a borrowed number: -1 switches the hint off. Throws sys::Error.
void install_sigsegv_hint(int fd);

// Another descriptor for the handler that is installed. Runs in: child.
void set_sigsegv_hint_fd(int fd) noexcept;

}  // namespace pyplaypen::python
