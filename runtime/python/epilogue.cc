#include "runtime/python/epilogue.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "runtime/python/py_error.h"
#include "runtime/python/text.h"

namespace pyplaypen::python {
namespace {

constexpr size_t kMaxText = 8000;

void call(const PyRef& function) {
  if (!PyRef::steal(PyObject_CallNoArgs(function.get()))) print_unraisable(function.get());
}

bool is_only_thread() {
  PyThreadState* head = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  return head != nullptr && PyThreadState_Next(head) == nullptr;
}

// Each name becomes None, those with one underscore first, as at the end of an interpreter.
void release_names(PyObject* names) {
  const PyRef all = PyRef::steal(PyDict_Keys(names));
  if (!all) return PyErr_Clear();
  const auto release = [&](bool underscored) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all.get()); ++i) {
      PyObject* name = PyList_GET_ITEM(all.get(), i);
      if (!PyUnicode_CheckExact(name)) continue;
      const Py_ssize_t length = PyUnicode_GET_LENGTH(name);
      const auto at = [&](Py_ssize_t place) {
        return length > place ? PyUnicode_READ_CHAR(name, place) : 0;
      };
      const bool single = at(0) == '_' && at(1) != '_';
      const bool keeps = at(0) == '_' && at(1) == '_' && at(length - 1) == '_';
      if (keeps || single != underscored) continue;
      if (PyDict_SetItem(names, name, Py_None) != 0) PyErr_Clear();
    }
  };
  release(true);
  release(false);
}

// Whether a regular file is open beyond the standard streams. Only such a file's buffer can hold
// what an exit would lose for good. Descriptors are given out from the lowest, so a block with few
// open ones ends the search; a file that was put far above by dup2 is not seen.
bool has_open_file() {
  constexpr nfds_t kBlock = 64;  // 1 us; all of 1024: 20 us
  constexpr int kFew = 16;
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  std::array<pollfd, kBlock> descriptors;
  for (nfds_t first = 0; first < limit.rlim_cur; first += kBlock) {
    const nfds_t count = std::min<nfds_t>(kBlock, limit.rlim_cur - first);
    for (nfds_t i = 0; i < count; ++i) descriptors[i] = {static_cast<int>(first + i), 0, 0};
    if (::poll(descriptors.data(), count, 0) < 0) return true;
    int open = 0;
    for (nfds_t i = 0; i < count; ++i) {
      if ((descriptors[i].revents & POLLNVAL) != 0) continue;
      ++open;
      struct stat status = {};
      if (first + i > STDERR_FILENO && ::fstat(descriptors[i].fd, &status) == 0 &&
          S_ISREG(status.st_mode)) {
        return true;
      }
    }
    if (open <= kFew) break;
  }
  return false;
}

bool is_closed(const Captured& captured, PyObject* file) {
  const PyRef closed = PyRef::steal(PyObject_GetAttr(file, captured.names.closed.get()));
  const bool result = closed && PyObject_IsTrue(closed.get()) == 1;
  PyErr_Clear();
  return result;
}

// Files that something else than the code's globals keeps alive: a cycle, a module, a thread.
// Before a collection, which may close a file under its buffer: it has no order.
void flush_files(const Captured& captured) {
  const PyRef objects = PyRef::steal(PyObject_CallNoArgs(captured.all_objects.get()));
  if (!objects || !PyList_Check(objects.get())) return PyErr_Clear();
  auto* base = reinterpret_cast<PyTypeObject*>(captured.io_base.get());
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(objects.get()); ++i) {
    PyObject* object = PyList_GET_ITEM(objects.get(), i);
    if (PyType_IsSubtype(Py_TYPE(object), base) == 0 || is_closed(captured, object)) continue;
    if (!PyRef::steal(PyObject_CallMethodNoArgs(object, captured.names.flush.get()))) PyErr_Clear();
  }
}

void flush_stream(const Captured& captured, PyObject* stream) {
  if (stream == nullptr || stream == Py_None || is_closed(captured, stream)) return;
  const PyRef held = PyRef::borrow(stream);
  if (!PyRef::steal(PyObject_CallMethodNoArgs(stream, captured.names.flush.get()))) print_unraisable(stream);
}

void flush_streams(const Captured& captured) {
  PyObject* output = PySys_GetObject("stdout");
  if (output != captured.standard_output.get()) flush_stream(captured, output);
  flush_stream(captured, captured.standard_output.get());
  PyObject* error = PySys_GetObject("stderr");
  if (error != captured.standard_error.get()) flush_stream(captured, error);
  flush_stream(captured, captured.standard_error.get());
  std::fflush(nullptr);  // a stream that cannot be written has nobody left to hear of it
}

}  // namespace

void warm_up_finish(const Captured& captured) {
  has_open_file();
  is_only_thread();
  flush_streams(captured);
}

void finish(const Captured& captured) {
  // Joining costs 25 us where there is nothing to join; exit functions of threads are registered by
  // few modules.
  PyObject* registered = captured.thread_exit_functions.get();
  const bool is_idle = is_only_thread() && registered != nullptr && PyList_Check(registered) &&
                       PyList_GET_SIZE(registered) == 0;
  if (!is_idle) call(captured.join_threads);
  call(captured.run_exit_functions);
  // Daemon threads go on running here, unlike at the end of an interpreter: leave them their names.
  if (is_only_thread()) release_names(captured.main_dict.get());
  if (has_open_file()) {
    flush_files(captured);
    PyGC_Collect();  // files that are more than a buffer (gzip) end with their close
  }
  flush_streams(captured);
  PyErr_Clear();
}

ExitRequest exit_request(PyObject* system_exit) {
  PyRef code = PyRef::steal(PyObject_GetAttrString(system_exit, "code"));
  if (!code) PyErr_Clear();
  if (!code || code.get() == Py_None) return {};
  if (!PyLong_Check(code.get())) return {1, bounded_str(code.get(), kMaxText)};
  const long long status = PyLong_AsLongLong(code.get());
  if (status == -1) PyErr_Clear();  // out of range: -1, as Python has it
  return {status, {}};
}

void leave_as_copy(const Captured& captured, PyRef exception) {
  int status = 0;
  if (exception && PyErr_GivenExceptionMatches(exception.get(), PyExc_SystemExit) != 0) {
    const ExitRequest request = exit_request(exception.get());
    status = static_cast<int>(request.status & 0xFF);
    if (!request.text.empty()) PySys_FormatStderr("%s\n", request.text.c_str());
  } else if (exception) {
    status = 1;
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(exception.get()));
    PyErr_SetObject(type, exception.get());
    PyErr_PrintEx(0);  // through sys.excepthook
  }
  exception = {};
  finish(captured);
  ::_exit(status);
}

}  // namespace pyplaypen::python
