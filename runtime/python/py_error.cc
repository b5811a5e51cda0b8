#include "runtime/python/py_error.h"

namespace pyplaypen::python {

#if PY_VERSION_HEX >= 0x030C0000

PyRef take_exception() { return PyRef::steal(PyErr_GetRaisedException()); }

SavedException::~SavedException() {
  if (saved_) PyErr_SetRaisedException(saved_.release());
}

#else

PyRef take_exception() {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  if (type == nullptr) return {};
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr && value != nullptr) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return PyRef::steal(value);
}

SavedException::~SavedException() {
  if (!saved_) return;
  PyObject* value = saved_.release();
  PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(value))), value,
                PyException_GetTraceback(value));
}

#endif

PyRef take_failure() {
  PyRef exception = take_exception();
  if (exception) return exception;
  PyErr_SetString(PyExc_SystemError, "a call failed without setting an exception");
  return take_exception();
}

void print_unraisable(PyObject* where) {
  if (PyErr_Occurred() != nullptr) PyErr_WriteUnraisable(where);
}

}  // namespace pyplaypen::python
