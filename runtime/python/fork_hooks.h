// Python's at-fork hooks, kept out of the forks that need none of them.
#pragma once

#include "runtime/python/py_ref.h"

namespace pyplaypen::python {

// What modules register with os.register_at_fork while they are imported into the zygote. CPython
// would run all of it in every child: 480 to 900 us for threading, random and logging alone, most of
// it copied pages (docs/performance.md). In a process that had one thread when it forked, these three
// have nothing to repair.
struct ForkHooks {
  PyRef recorded;       // list of the keyword arguments of each call
  PyRef real_register;  // os.register_at_fork as it was
};

// Puts a recorder in the place of os.register_at_fork. Runs in: zygote, right after the start of the
// interpreter, before any other import. Throws std::runtime_error.
ForkHooks record_fork_hooks();

// Puts the original back: what code registers from here on is CPython's own affair. Runs in: zygote,
// after the imports. False with a Python exception set.
bool stop_recording(const ForkHooks& hooks);

enum class HookSet {
  kAll,
  kUnknownOnly,  // without those of threading, random and logging, which settle() and one thread replace
};

// Runs the recorded after_in_child hooks, then registers everything with CPython, so that a fork by
// user code is as any fork. Errors are printed, as CPython does. Runs in: child, after
// PyOS_AfterFork_Child.
void run_fork_hooks(const ForkHooks& hooks, HookSet which);

}  // namespace pyplaypen::python
