// The exception that a C API call left behind, as an object.
#pragma once

#include "runtime/python/py_ref.h"

namespace pyplaypen::python {

// Takes the current exception, normalized and with its traceback attached; the indicator is clear
// afterwards. Empty when none is set.
PyRef take_exception();

// take_exception() for calls that are known to have failed: a NULL without an exception (a broken C
// extension) comes back as a SystemError.
PyRef take_failure();

// Tells Python's unraisable hook about the current exception, which writes it to sys.stderr, and
// clears it.
void print_unraisable(PyObject* where);

// Keeps an exception that was set before out of the way of what is done meanwhile.
class SavedException {
 public:
  SavedException() : saved_(take_exception()) {}
  SavedException(const SavedException&) = delete;
  SavedException& operator=(const SavedException&) = delete;
  ~SavedException();

 private:
  PyRef saved_;
};

}  // namespace pyplaypen::python
