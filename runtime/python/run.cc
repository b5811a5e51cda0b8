#include "runtime/python/run.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <optional>

#include "runtime/python/call_state.h"
#include "runtime/python/classify.h"
#include "runtime/python/compile.h"
#include "runtime/python/describe.h"
#include "runtime/python/epilogue.h"
#include "runtime/python/evaluate.h"
#include "runtime/python/project.h"
#include "runtime/python/py_error.h"
#include "runtime/python/source.h"
#include "runtime/python/text.h"

namespace pyplaypen::python {
namespace {

using Status = wire::ReportStatus;

constexpr size_t kProbeBytes = size_t{4} << 20;
constexpr size_t kMaxMessage = 1000;

class Call {
 public:
  Call(Captured& captured, const Extensions& extensions, const wire::Request& request,
       const CallPlace& place, wire::Report& report)
      : captured_(captured),
        extensions_(extensions),
        request_(request),
        place_(place),
        report_(report),
        source_(request.code) {}

  // In order; each step is false when the call is over, and has said why in the report.
  void run() {
    if (prepare() && add_globals() && compile()) evaluate_and_project();
  }

 private:
  bool prepare();
  bool register_source();
  bool add_globals();
  bool compile();
  void evaluate_and_project();

  bool fail(Status status, std::string message) {
    report_.status = status;
    report_.message = std::move(message);
    return false;
  }
  bool fail_extension(const std::string& message);
  void explain(PyRef exception);
  void explain_exit(PyObject* system_exit);
  std::string limit_prefix() const;

  Captured& captured_;
  const Extensions& extensions_;
  const wire::Request& request_;
  const CallPlace& place_;
  wire::Report& report_;
  const Source source_;
  std::optional<Compiled> compiled_;
};

bool Call::prepare() {
  if (request_.environment && !apply_environment(captured_, *request_.environment)) {
    return fail(Status::kInternal,
                std::string("the environment cannot be set: ") + std::strerror(errno));
  }
  captured_.main_file->set_source(request_.code, place_.private_directory);
  if (!add_import_directory(place_.workspace)) {
    return fail(Status::kInternal, exception_line(take_failure().get(), kMaxMessage));
  }
  return true;
}

bool Call::fail_extension(const std::string& message) {
  const PyRef exception = take_exception();
  if (exception) describe(captured_, source_, exception.get(), report_);
  report_.line.reset();
  return fail(Status::kExtension, "globals_provider " + extensions_.globals_provider.name + ": " +
                                      (message.empty() ? report_.message : message));
}

bool Call::add_globals() {
  if (!extensions_.globals_provider) return true;
  const std::string extra = request_.extra_json.empty() ? "{}" : request_.extra_json;
  const PyRef text = make_str(extra);
  const PyRef extra_object =
      text ? PyRef::steal(PyObject_CallOneArg(extensions_.json_loads.get(), text.get())) : PyRef();
  if (!extra_object) return fail_extension("");
  const PyRef workspace = PyRef::steal(PyUnicode_DecodeFSDefault(place_.workspace.c_str()));
  const PyRef id = make_str(request_.request_id);
  if (!workspace || !id) return fail_extension("");
  const PyRef context =
      PyRef::steal(Py_BuildValue("{s:O,s:O,s:O}", "request_id", id.get(), "workspace",
                                 workspace.get(), "extra", extra_object.get()));
  const PyRef names = context ? PyRef::steal(PyObject_CallOneArg(
                                    extensions_.globals_provider.function.get(), context.get()))
                              : PyRef();
  if (!names) return fail_extension("");
  const std::string type = type_name(Py_TYPE(names.get()));
  if (PyMapping_Check(names.get()) == 0 || PyUnicode_Check(names.get()) ||
      PyList_Check(names.get()) || PyTuple_Check(names.get())) {
    return fail_extension("returned a value of type " + type + ", not a dict of names");
  }
  const PyRef items = PyRef::steal(PyMapping_Items(names.get()));
  if (!items) return fail_extension("");
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* pair = PyList_GET_ITEM(items.get(), i);
    PyObject* name =
        PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2 ? PyTuple_GET_ITEM(pair, 0) : nullptr;
    if (name == nullptr || !PyUnicode_Check(name)) {
      return fail_extension("returned a name that is not a str");
    }
    if (PyDict_SetItem(captured_.main_dict.get(), name, PyTuple_GET_ITEM(pair, 1)) != 0) {
      return fail_extension("");
    }
  }
  return true;
}

// For tracebacks and inspect.getsource: the size and the lines; no modification time, so that the
// entry is never taken for stale.
bool Call::register_source() {
  const PyRef lines = source_.lines();
  if (!lines) return false;
  const PyRef entry =
      PyRef::steal(Py_BuildValue("(nOOO)", static_cast<Py_ssize_t>(request_.code.size()), Py_None,
                                 lines.get(), captured_.file_name.get()));
  if (!entry ||
      PyDict_SetItem(captured_.linecache.get(), captured_.file_name.get(), entry.get()) != 0) {
    return false;
  }
  // A script finds its neighbours by its name; the attribute of the module is MainFile's.
  if (request_.code.find("__file__") == std::string::npos) return true;
  const PyRef path =
      PyRef::steal(PyUnicode_DecodeFSDefault((place_.workspace + "/" + kSourceName).c_str()));
  return path && PyDict_SetItemString(captured_.main_dict.get(), "__file__", path.get()) == 0;
}

bool can_allocate(size_t bytes) {
  void* block = PyMem_RawMalloc(bytes);
  PyMem_RawFree(block);
  return block != nullptr;
}

bool Call::compile() {
  if (register_source()) compiled_ = compile_source(captured_, source_);
  if (compiled_) {
    captured_.main_file->set_value(compiled_->value_at);
    return true;
  }
  const PyRef exception = take_failure();
  const bool is_memory = PyErr_GivenExceptionMatches(exception.get(), PyExc_MemoryError) != 0;
  // The compiler says MemoryError, too, when its own stack is not deep enough.
  if (is_memory && !can_allocate(kProbeBytes)) {
    report_.status = Status::kMemoryLimit;
    report_.message = limit_prefix() + "MemoryError while compiling";
    return false;
  }
  describe(captured_, source_, exception.get(), report_);
  report_.status = Status::kSyntax;
  if (PyErr_GivenExceptionMatches(exception.get(), PyExc_SyntaxError) == 0) {
    report_.message = "the source is beyond what the compiler can take (" + report_.message + ")";
  }
  return false;
}

std::string Call::limit_prefix() const {
  switch (report_.status) {
    case Status::kMemoryLimit:
      return "memory_bytes (" + std::to_string(request_.limits.memory_bytes) + ") is used up: ";
    case Status::kProcessLimit:
      return "process_count (" + std::to_string(request_.limits.process_count) + ") is used up: ";
    case Status::kOpenFilesLimit:
      return "open_files (" + std::to_string(request_.limits.open_files) + ") is used up: ";
    default:
      return {};
  }
}

void Call::explain_exit(PyObject* system_exit) {
  const ExitRequest request = exit_request(system_exit);
  if (request.status == 0) return;
  describe(captured_, source_, system_exit, report_);
  report_.status = Status::kRuntime;
  report_.exit_code = request.status;
  if (!request.text.empty()) report_.message = request.text;
}

void Call::explain(PyRef exception) {
  if (PyErr_GivenExceptionMatches(exception.get(), PyExc_SystemExit) != 0) {
    return explain_exit(exception.get());
  }
  report_.status = classify(exception.get());
  describe(captured_, source_, exception.get(), report_);
  report_.message = limit_prefix() + report_.message;
}

void Call::evaluate_and_project() {
  Evaluation evaluation = evaluate(captured_, *compiled_, captured_.main_dict.get());
  compiled_.reset();
  if (::getpid() != place_.leader) leave_as_copy(captured_, std::move(evaluation.exception));
  if (evaluation.exception) {
    captured_.reserve.release();
    explain(std::move(evaluation.exception));
  } else {
    project(captured_, extensions_, evaluation.value.get(),
            static_cast<size_t>(request_.limits.return_value_bytes), report_);
  }
}

void add_usage(wire::Report& report) {
  rusage usage = {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return;
  const auto microseconds = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
  };
  report.cpu_microseconds = microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
  report.max_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace

wire::Report run_call(Captured& captured, const Extensions& extensions,
                      const wire::Request& request, const CallPlace& place) noexcept {
  wire::Report report;
  try {
    Call(captured, extensions, request, place, report).run();
  } catch (const std::bad_alloc&) {
    captured.reserve.release();
    report = {};
    report.status = Status::kMemoryLimit;
    report.message = "memory_bytes is used up: no memory for the report";
  }
  PyErr_Clear();
  if (::getpid() != place.leader) leave_as_copy(captured, {});
  finish(captured);
  if (::getpid() != place.leader) ::_exit(0);
  add_usage(report);
  return report;
}

}  // namespace pyplaypen::python
