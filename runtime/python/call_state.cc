#include "runtime/python/call_state.h"

#include <sys/random.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>

#include "runtime/python/py_error.h"
#include "runtime/python/text.h"

namespace pyplaypen::python {
namespace {

constexpr size_t kMaxMessage = 500;

void do_nothing(int) {}

// A module that is loaded already; empty, without an exception, when it is not.
PyRef loaded(const char* name) {
  return PyRef::borrow(PyDict_GetItemString(PyImport_GetModuleDict(), name));
}

// An attribute of a module; empty when that is not loaded.
PyRef attribute_of(const char* module_name, const char* name) {
  const PyRef module = loaded(module_name);
  if (!module) return {};
  PyRef attribute = PyRef::steal(PyObject_GetAttrString(module.get(), name));
  if (!attribute) throw std::runtime_error(exception_line(take_failure().get(), kMaxMessage));
  return attribute;
}

bool seed_random(const Captured& captured, PyObject* generator) {
  return generator == nullptr ||
         (PyRef::steal(PyObject_CallOneArg(captured.random_seed.get(), generator)) &&
          PyObject_SetAttr(generator, captured.names.gauss_next.get(), Py_None) == 0);
}

// From 256 bits of the kernel's: without an argument, seed() draws ten times as much (550 us, 150
// copied pages; this 180 us).
bool seed_numpy(PyObject* seed) {
  if (seed == nullptr) return true;
  uint32_t words[8];
  if (::getrandom(words, sizeof words, 0) != static_cast<ssize_t>(sizeof words)) {
    PyErr_SetFromErrno(PyExc_OSError);
    return false;
  }
  const PyRef list = PyRef::steal(PyList_New(0));
  for (const uint32_t word : words) {
    const PyRef number = PyRef::steal(PyLong_FromUnsignedLong(word));
    if (!list || !number || PyList_Append(list.get(), number.get()) != 0) return false;
  }
  return static_cast<bool>(PyRef::steal(PyObject_CallOneArg(seed, list.get())));
}

bool forget_temporary_directory(const Captured& captured, PyObject* tempfile) {
  return tempfile == nullptr || PyObject_SetAttr(tempfile, captured.names.tempdir.get(), Py_None) == 0;
}

std::string time_zone() {
  const char* zone = std::getenv("TZ");
  return zone == nullptr ? std::string("\0", 1) : std::string(zone);
}

PyRef make_bytes(const std::string& text) {
  return PyRef::steal(PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = do_nothing;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  // Cannot fail for these signals (man 2 sigaction).
  ::sigaction(SIGPIPE, &action, nullptr);
  ::sigaction(SIGXFSZ, &action, nullptr);
}

SharedState find_shared_state() {
  return {attribute_of("random", "_inst"), attribute_of("numpy.random", "seed"), loaded("tempfile")};
}

std::string settle(const Captured& captured, const SharedState& state) {
  const char* what = nullptr;
  if (!seed_random(captured, state.random_generator.get())) {
    what = "random";
  } else if (!seed_numpy(state.numpy_seed.get())) {
    what = "numpy.random";
  } else if (!forget_temporary_directory(captured, state.tempfile.get())) {
    what = "tempfile";
  }
  if (what == nullptr) return {};
  return std::string("resetting ") + what + ": " +
         exception_line(take_failure().get(), kMaxMessage);
}

bool apply_environment(const Captured& captured, const wire::Environment& environment) {
  const std::string zone_before = time_zone();
  ::clearenv();
  PyDict_Clear(captured.environ_data.get());
  for (const auto& [name, value] : environment) {
    if (::setenv(name.c_str(), value.c_str(), 1) != 0) return false;
    const PyRef name_object = make_bytes(name);
    const PyRef value_object = make_bytes(value);
    if (!name_object || !value_object ||
        PyDict_SetItem(captured.environ_data.get(), name_object.get(), value_object.get()) != 0) {
      PyErr_Clear();
      errno = ENOMEM;
      return false;
    }
  }
  if (time_zone() != zone_before) {
    // Sets the time module's constants and calls tzset(3). A zone that does not exist is UTC.
    if (!PyRef::steal(PyObject_CallNoArgs(captured.tzset.get()))) PyErr_Clear();
  }
  return true;
}

bool add_import_directory(const std::string& directory) {
  PyObject* path = PySys_GetObject("path");
  if (path == nullptr || !PyList_Check(path)) return true;
  const PyRef entry = PyRef::steal(PyUnicode_DecodeFSDefault(directory.c_str()));
  return entry && PyList_Append(path, entry.get()) == 0;
}

}  // namespace pyplaypen::python
