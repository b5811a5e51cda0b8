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

// Evaluates in `names`, a module's dict. A part that awaits runs under asyncio.run, the parts after
// it inside the same loop; parts before it run without a loop, so that they may call asyncio.run.
// Runs user code.
Evaluation evaluate(const Captured& captured, const Compiled& compiled, PyObject* names);

// Source of Captured::drive: awaits the first, then evaluates the second in the same loop.
inline constexpr char kDriveSource[] =
    "async def drive(head, evaluate, tail, names, awaits):\n"
    "    await head\n"
    "    value = evaluate(tail, names)\n"
    "    return await value if awaits else value\n";

}  // namespace pyplaypen::python
