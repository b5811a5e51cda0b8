// Runs a call's compiled source.
#pragma once

#include "runtime/python/captured.h"
#include "runtime/python/compile.h"

namespace pyplaypen::python {

// Exactly one is set: the value (None when the last statement has none), or what was raised.
struct Evaluation {
  PyRef value;
  PyRef exception;
};

// Evaluates in `names`, a module's dict. Where a part awaits, both run inside one asyncio.run: tasks
// that the statements make are there for the last expression to await. Only statements that start
// loops of their own, and await nothing, run before it. Runs user code.
Evaluation evaluate(const Captured& captured, const Compiled& compiled, PyObject* names);

// Source of Captured::drive: evaluates the one, then the other in the same loop.
inline constexpr char kDriveSource[] =
    "async def drive(evaluate, names, head, head_awaits, tail, tail_awaits):\n"
    "    value = evaluate(head, names)\n"
    "    if head_awaits: await value\n"
    "    value = evaluate(tail, names)\n"
    "    return await value if tail_awaits else value\n";

}  // namespace pyplaypen::python
