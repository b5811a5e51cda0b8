// Python's at-fork hooks, kept out of the forks that need none of them.
#pragma once

#include "runtime/python/py_ref.h"

namespace pyplaypen::python {

// What modules give os.register_at_fork while they are imported into the zygote. CPython would run all
// of it in every child: 480 to 900 us for threading, random and logging alone, most of it copied pages
// (docs/performance.md). In a process that had one thread when it forked, these three have nothing to
// repair. So they are kept here, and CPython knows three functions of ours, which run them when user
// code forks.
//
// One for the process; stays where it is once recording has begun.
struct ForkHooks {
  PyRef before;           // lists of callables, in the order of their registration
  PyRef after_in_parent;
  PyRef after_in_child;
  PyRef unknown;          // of after_in_child: without those of threading, random and logging
  PyRef real_register;    // os.register_at_fork as it was
  PyRef main_thread;      // threading's object of it; empty where there is no such thing
  PyRef native_id;        // the name of its attribute
  bool in_call = false;   // the fork that is being made is the code's own
};

// Puts a recorder in the place of os.register_at_fork. Runs in: zygote, right after the start of the
// interpreter, before any other import. Throws std::runtime_error.
void record_fork_hooks(ForkHooks& hooks);

// Puts the original back and registers what runs the recorded hooks: what is registered from here on
// is CPython's own affair. Runs in: zygote, after the imports. False with a Python exception set.
bool stop_recording(ForkHooks& hooks);

enum class HookSet {
  kAll,
  kUnknownOnly,  // without those of threading, random and logging, which settle() and one thread replace
};

// Runs the recorded after_in_child hooks; a fork from here on is the code's own, and runs them all.
// Errors are printed, as CPython does. Runs in: child, after PyOS_AfterFork_Child.
void run_fork_hooks(ForkHooks& hooks, HookSet which);

}  // namespace pyplaypen::python
