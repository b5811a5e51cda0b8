#include "runtime/python/extensions.h"

#include "runtime/python/py_error.h"
#include "runtime/python/text.h"

namespace pyplaypen::python {
namespace {

constexpr size_t kMaxMessage = 1000;

std::string load(const char* what, const std::string& name, Extension& extension) {
  if (name.empty()) return {};
  const std::string prefix = std::string(what) + " " + name + ": ";
  const size_t colon = name.find(':');
  if (colon == 0 || colon == std::string::npos || colon + 1 == name.size()) {
    return prefix + "is not of the form module:function";
  }
  PyRef object = PyRef::steal(PyImport_ImportModule(name.substr(0, colon).c_str()));
  std::string path = name.substr(colon + 1);
  while (object && !path.empty()) {
    const size_t dot = path.find('.');
    object = PyRef::steal(PyObject_GetAttrString(object.get(), path.substr(0, dot).c_str()));
    path = dot == std::string::npos ? "" : path.substr(dot + 1);
  }
  if (!object) return prefix + exception_line(take_failure().get(), kMaxMessage);
  if (PyCallable_Check(object.get()) == 0) return prefix + "cannot be called";
  extension = {object, name};
  return {};
}

bool contains(PyObject* wants, const char* word) {
  const PyRef item = make_str(word);
  const int found = item ? PySequence_Contains(wants, item.get()) : -1;
  if (found < 0) PyErr_Clear();
  return found == 1;
}

}  // namespace

std::string load_extensions(const std::string& globals_provider, const std::string& type_projector,
                            Extensions& extensions) {
  std::string error = load("globals_provider", globals_provider, extensions.globals_provider);
  if (error.empty() && extensions.globals_provider) {
    const PyRef json = PyRef::steal(PyImport_ImportModule("json"));
    if (json) extensions.json_loads = PyRef::steal(PyObject_GetAttrString(json.get(), "loads"));
    if (!extensions.json_loads) return "json: " + exception_line(take_failure().get(), kMaxMessage);
  }
  if (error.empty()) error = load("type_projector", type_projector, extensions.type_projector);
  if (error.empty() && extensions.type_projector) {
    const PyRef wants =
        PyRef::steal(PyObject_GetAttrString(extensions.type_projector.function.get(), "wants"));
    if (wants) {
      extensions.wants_subclasses = contains(wants.get(), "subclasses");
      extensions.wants_non_finite = contains(wants.get(), "non_finite");
    } else {
      PyErr_Clear();
    }
  }
  return error;
}

}  // namespace pyplaypen::python
