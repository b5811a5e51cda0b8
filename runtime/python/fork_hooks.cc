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

ForkHooks* active = nullptr;  // what the functions that CPython calls belong to

bool record_one(PyObject* list, const char* name, PyObject* hook) {
  if (hook == nullptr) return true;
  if (PyCallable_Check(hook) != 0) return PyList_Append(list, hook) == 0;
  PyErr_Format(PyExc_TypeError, "'%s' must be callable, not %.200s", name, Py_TYPE(hook)->tp_name);
  return false;
}

PyObject* record(PyObject*, PyObject* arguments, PyObject* keywords) noexcept {
  static const char* names[] = {"before", "after_in_child", "after_in_parent", nullptr};
  PyObject* before = nullptr;
  PyObject* in_child = nullptr;
  PyObject* in_parent = nullptr;
  if (PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOO:register_at_fork", const_cast<char**>(names),
                                  &before, &in_child, &in_parent) == 0)
    return nullptr;
  if (before == nullptr && in_child == nullptr && in_parent == nullptr) {
    PyErr_SetString(PyExc_TypeError, "At least one argument is required.");
    return nullptr;
  }
  if (!record_one(active->before.get(), names[0], before) ||
      !record_one(active->after_in_child.get(), names[1], in_child) ||
      !record_one(active->after_in_parent.get(), names[2], in_parent))
    return nullptr;
  Py_RETURN_NONE;
}

void run(PyObject* hook) {
  if (!PyRef::steal(PyObject_CallNoArgs(hook))) print_unraisable(hook);
}

void run_all(const PyRef& hooks) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks.get()); ++i) run(PyList_GET_ITEM(hooks.get(), i));
}

PyObject* run_before(PyObject*, PyObject*) noexcept {
  if (active->in_call)
    for (Py_ssize_t i = PyList_GET_SIZE(active->before.get()); i > 0; --i)
      run(PyList_GET_ITEM(active->before.get(), i - 1));
  Py_RETURN_NONE;
}

PyObject* run_after_in_parent(PyObject*, PyObject*) noexcept {
  if (active->in_call) run_all(active->after_in_parent);
  Py_RETURN_NONE;
}

PyObject* run_after_in_child(PyObject*, PyObject*) noexcept {
  if (active->in_call) run_all(active->after_in_child);
  Py_RETURN_NONE;
}

PyMethodDef recorder_definition = {kRegister,
                                   reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(record)),
                                   METH_VARARGS | METH_KEYWORDS, nullptr};
PyMethodDef before_definition = {"before", run_before, METH_NOARGS, nullptr};
PyMethodDef in_parent_definition = {"after_in_parent", run_after_in_parent, METH_NOARGS, nullptr};
PyMethodDef in_child_definition = {"after_in_child", run_after_in_child, METH_NOARGS, nullptr};

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
void renew_main_thread(const ForkHooks& hooks) {
  if (!hooks.main_thread) return;
  const PyRef number = PyRef::steal(PyLong_FromUnsignedLong(PyThread_get_thread_native_id()));
  if (!number || PyObject_SetAttr(hooks.main_thread.get(), hooks.native_id.get(), number.get()) != 0) PyErr_Clear();
}

PyRef find_main_thread(const PyRef& native_id) {
  const PyRef threading = PyRef::borrow(PyDict_GetItemString(PyImport_GetModuleDict(), "threading"));
  PyRef main = threading ? PyRef::steal(PyObject_GetAttrString(threading.get(), "_main_thread")) : PyRef();
  const bool is_numbered = main && PyObject_HasAttr(main.get(), native_id.get()) != 0;
  PyErr_Clear();
  return is_numbered ? main : PyRef();
}

bool set_register(PyObject* function) {
  for (const char* name : {"os", "posix"}) {
    const PyRef module = PyRef::steal(PyImport_ImportModule(name));
    if (!module || PyObject_SetAttrString(module.get(), kRegister, function) != 0) return false;
  }
  return true;
}

// CPython's own register_at_fork with our three functions.
bool register_dispatch(const ForkHooks& hooks) {
  const PyRef arguments = PyRef::steal(PyTuple_New(0));
  const PyRef keywords = PyRef::steal(PyDict_New());
  for (PyMethodDef* definition : {&before_definition, &in_parent_definition, &in_child_definition}) {
    const PyRef function = PyRef::steal(PyCFunction_New(definition, nullptr));
    if (!keywords || !function ||
        PyDict_SetItemString(keywords.get(), definition->ml_name, function.get()) != 0)
      return false;
  }
  return arguments &&
         PyRef::steal(PyObject_Call(hooks.real_register.get(), arguments.get(), keywords.get()));
}

}  // namespace

void record_fork_hooks(ForkHooks& hooks) {
  active = &hooks;
  const PyRef os = PyRef::steal(PyImport_ImportModule("os"));
  if (os) hooks.real_register = PyRef::steal(PyObject_GetAttrString(os.get(), kRegister));
  for (PyRef* list : {&hooks.before, &hooks.after_in_parent, &hooks.after_in_child, &hooks.unknown})
    *list = PyRef::steal(PyList_New(0));
  const PyRef recorder = PyRef::steal(PyCFunction_New(&recorder_definition, nullptr));
  if (!hooks.real_register || !hooks.unknown || !recorder || !set_register(recorder.get()))
    throw std::runtime_error("os.register_at_fork: " + exception_line(take_failure().get(), kMaxMessage));
}

bool stop_recording(ForkHooks& hooks) {
  hooks.native_id = PyRef::steal(PyUnicode_InternFromString("_native_id"));
  if (!hooks.native_id) return false;
  hooks.main_thread = find_main_thread(hooks.native_id);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks.after_in_child.get()); ++i) {
    PyObject* const hook = PyList_GET_ITEM(hooks.after_in_child.get(), i);
    if (!is_known(hook) && PyList_Append(hooks.unknown.get(), hook) != 0) return false;
  }
  return set_register(hooks.real_register.get()) && register_dispatch(hooks);
}

void run_fork_hooks(ForkHooks& hooks, HookSet which) {
  if (which == HookSet::kAll) {
    run_all(hooks.after_in_child);
  } else {
    run_all(hooks.unknown);
    renew_main_thread(hooks);
  }
  hooks.in_call = true;
}

}  // namespace pyplaypen::python
