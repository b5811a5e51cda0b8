#include "runtime/python/classify.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "runtime/python/memory_reserve.h"
#include "runtime/python/text.h"
#include "runtime/sys/error.h"

namespace pyplaypen::python {
namespace {

using Status = wire::ReportStatus;

constexpr size_t kMaxText = 1000;
constexpr int kMaxLinks = 10;
constexpr Py_ssize_t kMaxMembers = 100;

bool is_a(PyObject* exception, PyObject* type) {
  return PyErr_GivenExceptionMatches(exception, type) != 0;
}

int errno_of(PyObject* exception) {
  if (!is_a(exception, PyExc_OSError)) return 0;
  const PyRef number = PyRef::steal(PyObject_GetAttrString(exception, "errno"));
  const long value = number && PyLong_Check(number.get()) ? PyLong_AsLong(number.get()) : 0;
  PyErr_Clear();
  return static_cast<int>(value);
}

int leave_at_once(void*) { ::_exit(0); }

enum class Probe { kPossible, kNoProcess, kNoMemory };

// A process that shares our memory and is gone before this returns; it sends no SIGCHLD.
Probe probe_process() {
  alignas(16) std::array<char, 16384> stack;
  const int pid =
      ::clone(leave_at_once, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK, nullptr);
  if (pid < 0) return errno == EAGAIN ? Probe::kNoProcess : Probe::kNoMemory;
  int status = 0;
  sys::retry_eintr([&] { return ::waitpid(pid, &status, __WCLONE); });
  return Probe::kPossible;
}

// The stack that pthread_create would map (man 3 pthread_create: RLIMIT_STACK, else 2 MiB), in what
// is left without the reserve that has been released since.
Probe probe_thread_stack() {
  constexpr size_t kStackWithoutLimit = size_t{2} << 20;
  rlimit limit = {};
  size_t size = kStackWithoutLimit;
  if (::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    size = static_cast<size_t>(limit.rlim_cur);
  }
  size += MemoryReserve::kBytes;
  void* stack = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return Probe::kNoMemory;
  ::munmap(stack, size);
  return Probe::kPossible;
}

bool ends_with(PyObject* text, std::string_view end) {
  return bounded_utf8(text, kMaxText).ends_with(end);
}

// What the innermost frame has to do with making processes.
enum class Origin { kProcessModule, kMayFork, kOther };

Origin origin_of(PyObject* exception) {
  const PyRef traceback = PyRef::steal(PyException_GetTraceback(exception));
  auto* entry = reinterpret_cast<PyTracebackObject*>(traceback.get());
  if (entry == nullptr) return Origin::kOther;
  while (entry->tb_next != nullptr) entry = entry->tb_next;
  const PyRef owner = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(entry->tb_frame)));
  auto* code = reinterpret_cast<PyCodeObject*>(owner.get());
  for (const char* module :
       {"/subprocess.py", "/multiprocessing/popen_fork.py", "/multiprocessing/util.py",
        "/multiprocessing/forkserver.py", "/pty.py"}) {
    if (ends_with(code->co_filename, module)) return Origin::kProcessModule;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); ++i) {
    PyObject* name = PyTuple_GET_ITEM(code->co_names, i);
    for (const char* function : {"fork", "forkpty", "fork_exec", "posix_spawn", "posix_spawnp"}) {
      if (PyUnicode_CompareWithASCIIString(name, function) == 0) return Origin::kMayFork;
    }
  }
  return Origin::kOther;
}

bool says_no_memory(const std::string& text) {
  return text.find("Cannot allocate memory") != std::string::npos ||
         text.find("failed to map segment") != std::string::npos ||
         text.find("cannot allocate memory") != std::string::npos;
}

// This exception by itself.
Status classify_one(PyObject* exception) {
  if (is_a(exception, PyExc_MemoryError)) return Status::kMemoryLimit;
  const int number = errno_of(exception);
  if (number == ENOMEM) return Status::kMemoryLimit;
  if (number == EMFILE) return Status::kOpenFilesLimit;
  if (number == EAGAIN) {
    // Also what non-blocking input says when there is none.
    const Origin origin = origin_of(exception);
    const bool is_limit = origin == Origin::kProcessModule ||
                          (origin == Origin::kMayFork && probe_process() == Probe::kNoProcess);
    return is_limit ? Status::kProcessLimit : Status::kRuntime;
  }
  const bool is_import = is_a(exception, PyExc_ImportError);
  const bool is_runtime = is_a(exception, PyExc_RuntimeError);
  if (!is_import && !is_runtime && !is_a(exception, PyExc_OSError)) return Status::kRuntime;
  const std::string text = bounded_str(exception, kMaxText);
  if (is_runtime && text.find("can't start new thread") != std::string::npos) {
    if (probe_process() == Probe::kNoProcess) return Status::kProcessLimit;
    return probe_thread_stack() == Probe::kNoMemory ? Status::kMemoryLimit : Status::kProcessLimit;
  }
  if (says_no_memory(text)) return Status::kMemoryLimit;
  if (is_import && text.find("Too many open files") != std::string::npos) {
    return Status::kOpenFilesLimit;
  }
  return Status::kRuntime;
}

Status classify_group(PyObject* exception, int depth);

// What a library wraps an operating system's error in; another type raised while one was handled is
// the code's own statement.
bool may_wrap(PyObject* exception) {
  return is_a(exception, PyExc_ImportError) || is_a(exception, PyExc_OSError) ||
         is_a(exception, PyExc_RuntimeError) || is_a(exception, PyExc_SystemError);
}

Status classify_chain(PyObject* exception, int depth) {
  PyRef current = PyRef::borrow(exception);
  for (int links = 0; current && links < kMaxLinks; ++links) {
    Status status = classify_one(current.get());
    if (status == Status::kRuntime) status = classify_group(current.get(), depth);
    if (status != Status::kRuntime) return status;
    PyRef next = PyRef::steal(PyException_GetCause(current.get()));
    const bool hides = reinterpret_cast<PyBaseExceptionObject*>(current.get())->suppress_context;
    if (!next && !hides && may_wrap(current.get())) {
      next = PyRef::steal(PyException_GetContext(current.get()));
    }
    current = next;
  }
  return Status::kRuntime;
}

Status classify_group(PyObject* exception, int depth) {
#if PY_VERSION_HEX >= 0x030B0000
  if (depth == kMaxLinks || !is_a(exception, PyExc_BaseExceptionGroup)) return Status::kRuntime;
  const PyRef members = PyRef::steal(PyObject_GetAttrString(exception, "exceptions"));
  if (!members) return PyErr_Clear(), Status::kRuntime;
  if (!PyTuple_Check(members.get()) || PyTuple_GET_SIZE(members.get()) == 0)
    return Status::kRuntime;
  const Status status = classify_chain(PyTuple_GET_ITEM(members.get(), 0), depth + 1);
  for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(members.get()) && i < kMaxMembers; ++i) {
    if (classify_chain(PyTuple_GET_ITEM(members.get(), i), depth + 1) != status) {
      return Status::kRuntime;
    }
  }
  return status;
#else
  (void)exception, (void)depth;
  return Status::kRuntime;
#endif
}

}  // namespace

Status classify(PyObject* exception) { return classify_chain(exception, 0); }

}  // namespace pyplaypen::python
