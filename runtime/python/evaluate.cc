#include "runtime/python/evaluate.h"

#include "runtime/python/py_error.h"

namespace pyplaypen::python {
namespace {

bool awaits(const PyRef& code) {
  return code && (reinterpret_cast<PyCodeObject*>(code.get())->co_flags & CO_COROUTINE) != 0;
}

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

PyRef run_parts(const Captured& captured, const Compiled& compiled, PyObject* names) {
  PyRef result = PyRef::borrow(Py_None);
  if (compiled.head) {
    result = PyRef::steal(PyEval_EvalCode(compiled.head.get(), names, names));
    if (!result) return {};
    if (awaits(compiled.head)) {
      if (!compiled.tail) {
        if (!run_in_loop(captured, result.get())) return {};
        return PyRef::borrow(Py_None);
      }
      const PyRef both = PyRef::steal(PyObject_CallFunctionObjArgs(
          captured.drive.get(), result.get(), captured.eval.get(), compiled.tail.get(), names,
          awaits(compiled.tail) ? Py_True : Py_False, nullptr));
      return both ? run_in_loop(captured, both.get()) : PyRef();
    }
  }
  if (compiled.tail) {
    result = PyRef::steal(PyEval_EvalCode(compiled.tail.get(), names, names));
    if (result && awaits(compiled.tail)) result = run_in_loop(captured, result.get());
  }
  return result;
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
