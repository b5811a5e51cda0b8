#include "runtime/python/evaluate.h"

#include "runtime/python/py_error.h"

namespace pyplaypen::python {
namespace {

PyRef run_in_loop(const Captured& captured, PyObject* coroutine) {
  PyRef run = captured.asyncio_run;
  if (!run) {
    const PyRef asyncio = PyRef::steal(PyImport_ImportModule("asyncio"));
    if (!asyncio) return {};
    run = PyRef::steal(PyObject_GetAttrString(asyncio.get(), "run"));
    if (!run) return {};
  }
  return PyRef::steal(PyObject_CallOneArg(run.get(), coroutine));
}

PyObject* truth(bool value) { return value ? Py_True : Py_False; }

PyRef run_part(const Captured& captured, const PyRef& code, PyObject* names) {
  PyRef result = PyRef::steal(PyEval_EvalCode(code.get(), names, names));
  return result && awaits(code) ? run_in_loop(captured, result.get()) : std::move(result);
}

PyRef run_parts(const Captured& captured, const Compiled& compiled, PyObject* names) {
  const PyRef& head = compiled.head;
  const PyRef& tail = compiled.tail;
  const bool one_loop =
      head && tail && (awaits(head) || (awaits(tail) && !compiled.head_starts_loops));
  if (one_loop) {
    const PyRef both = PyRef::steal(PyObject_CallFunctionObjArgs(
        captured.drive.get(), captured.eval.get(), names, head.get(), truth(awaits(head)),
        tail.get(), truth(awaits(tail)), nullptr));
    return both ? run_in_loop(captured, both.get()) : PyRef();
  }
  if (head && !run_part(captured, head, names)) return {};
  return tail ? run_part(captured, tail, names) : PyRef::borrow(Py_None);
}

}  // namespace

Evaluation evaluate(const Captured& captured, const Compiled& compiled, PyObject* names) {
  Evaluation result;
  result.value = run_parts(captured, compiled, names);
  if (!result.value) {
    result.exception = take_failure();
  } else if (!compiled.tail_is_value) {
    result.value = PyRef::borrow(Py_None);
  }
  return result;
}

}  // namespace pyplaypen::python
