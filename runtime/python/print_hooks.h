// Uncaught exceptions of threads, of forked copies and of finalizers, printed with the user's lines.
#pragma once

namespace pyplaypen::python {

// Before 3.13 CPython prints them in C, which reads source lines from files only, so that code that is
// no file shows none. Puts functions over the traceback module in the place of sys.excepthook,
// sys.unraisablehook and threading.excepthook, their originals under __...__ included: code that
// compares the two finds them unchanged. What ours cannot print, the originals do. Nothing to do, and
// true, from 3.13 on. False with a Python exception set. Runs in: zygote.
bool install_print_hooks();

}  // namespace pyplaypen::python
