#include "runtime/python/fork_hooks.h"

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

#include "runtime/python/py_error.h"
#include "runtime/python/text.h"

namespace pyplaypen::python {
namespace {

constexpr size_t kMaxMessage = 500;
constexpr char kRegister[] = "register_at_fork";

PyObject* record(PyObject* list, PyObject* arguments, PyObject* keywords) noexcept {
  if (PyTuple_GET_SIZE(arguments) != 0 || keywords == nullptr) {
    PyErr_SetString(PyExc_TypeError, "register_at_fork() takes keyword arguments only, at least one");
    return nullptr;
  }
  if (PyList_Append(list, keywords) != 0) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef recorder_definition = {kRegister,
                                   reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(record)),
                                   METH_VARARGS | METH_KEYWORDS, nullptr};

std::string text_attribute(PyObject* object, const char* name) {
  const PyRef value = PyRef::steal(PyObject_GetAttrString(object, name));
  PyErr_Clear();
  return value ? bounded_utf8(value.get(), 200) : "";
}

bool is_known(PyObject* hook) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kKnown = {
      {{"threading", "_after_fork"},
       {"random", "Random.seed"},
       {"logging", "_after_at_fork_child_reinit_locks"}}};
  const std::string module = text_attribute(hook, "__module__");
  const std::string name = text_attribute(hook, "__qualname__");
  for (const auto& [known_module, known_name] : kKnown)
    if (module == known_module && name == known_name) return true;
  return false;
}

// The one thing that threading's own hook would have set anew: the kernel's number of this thread.
void renew_main_thread() {
  const PyRef threading = PyRef::borrow(PyDict_GetItemString(PyImport_GetModuleDict(), "threading"));
  const PyRef main = threading ? PyRef::steal(PyObject_GetAttrString(threading.get(), "_main_thread")) : PyRef();
  if (main && !PyRef::steal(PyObject_CallMethod(main.get(), "_set_native_id", nullptr)))
    PyErr_Clear();  // an interpreter without native thread numbers
  PyErr_Clear();
}

bool set_register(PyObject* function) {
  for (const char* name : {"os", "posix"}) {
    const PyRef module = PyRef::steal(PyImport_ImportModule(name));
    if (!module || PyObject_SetAttrString(module.get(), kRegister, function) != 0) return false;
  }
  return true;
}

}  // namespace

ForkHooks record_fork_hooks() {
  ForkHooks hooks;
  const PyRef os = PyRef::steal(PyImport_ImportModule("os"));
  hooks.recorded = PyRef::steal(PyList_New(0));
  if (os) hooks.real_register = PyRef::steal(PyObject_GetAttrString(os.get(), kRegister));
  const PyRef recorder = hooks.recorded
                             ? PyRef::steal(PyCFunction_New(&recorder_definition, hooks.recorded.get()))
                             : PyRef();
  if (!hooks.real_register || !recorder || !set_register(recorder.get()))
    throw std::runtime_error("os.register_at_fork: " + exception_line(take_failure().get(), kMaxMessage));
  return hooks;
}

bool stop_recording(const ForkHooks& hooks) { return set_register(hooks.real_register.get()); }

void run_fork_hooks(const ForkHooks& hooks, HookSet which) {
  const PyRef no_arguments = PyRef::steal(PyTuple_New(0));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks.recorded.get()); ++i) {
    PyObject* const keywords = PyList_GET_ITEM(hooks.recorded.get(), i);
    PyObject* const hook = PyDict_GetItemString(keywords, "after_in_child");
    const bool skip = hook == nullptr || (which == HookSet::kUnknownOnly && is_known(hook));
    if (!skip && !PyRef::steal(PyObject_CallNoArgs(hook))) print_unraisable(hook);
    if (!PyRef::steal(PyObject_Call(hooks.real_register.get(), no_arguments.get(), keywords)))
      print_unraisable(hooks.real_register.get());
  }
  if (which == HookSet::kUnknownOnly) renew_main_thread();
}

}  // namespace pyplaypen::python
