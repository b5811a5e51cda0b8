#include "runtime/python/text.h"

#include <algorithm>

namespace pyplaypen::python {
namespace {

constexpr size_t kMaxTypeName = 200;

PyRef utf8_bytes(PyObject* text) {
  PyRef encoded = PyRef::steal(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
  if (!encoded) PyErr_Clear();
  return encoded;
}

}  // namespace

std::string bounded_utf8(PyObject* text, size_t max_bytes) {
  if (text == nullptr || !PyUnicode_Check(text)) return {};
  const auto most = static_cast<Py_ssize_t>(max_bytes);
  PyRef part = PyRef::borrow(text);
  bool cut = false;
  if (PyUnicode_GET_LENGTH(text) > most) {
    part = PyRef::steal(PyUnicode_Substring(text, 0, most));
    cut = true;
    if (!part) {
      PyErr_Clear();
      return {};
    }
  }
  const PyRef encoded = utf8_bytes(part.get());
  if (!encoded) return {};
  std::string result(PyBytes_AS_STRING(encoded.get()),
                     static_cast<size_t>(PyBytes_GET_SIZE(encoded.get())));
  if (result.size() > max_bytes) {
    size_t end = max_bytes;
    while (end > 0 && (static_cast<unsigned char>(result[end]) & 0xC0) == 0x80) --end;
    result.resize(end);
    cut = true;
  }
  if (cut) result += "...";
  return result;
}

std::string bounded_str(PyObject* object, size_t max_bytes) {
  const PyRef text = PyRef::steal(PyObject_Str(object));
  if (text) return bounded_utf8(text.get(), max_bytes);
  PyErr_Clear();
  return "<str() failed>";
}

std::string bounded_repr(PyObject* object, size_t max_bytes) {
  PyRef shown = PyRef::borrow(object);
  // A repr is built whole before it can be cut: look at no more of a long string than is shown.
  const auto most = static_cast<Py_ssize_t>(max_bytes);
  if (PyUnicode_CheckExact(object) && PyUnicode_GET_LENGTH(object) > most) {
    shown = PyRef::steal(PyUnicode_Substring(object, 0, most));
  } else if ((PyBytes_CheckExact(object) || PyByteArray_CheckExact(object)) &&
             PyObject_Size(object) > most) {
    shown = PyRef::steal(PySequence_GetSlice(object, 0, most));
  }
  const PyRef text = shown ? PyRef::steal(PyObject_Repr(shown.get())) : PyRef();
  if (text) return bounded_utf8(text.get(), max_bytes);
  PyErr_Clear();
  return "<repr() failed>";
}

std::string type_name(PyTypeObject* type) {
  auto* object = reinterpret_cast<PyObject*>(type);
  const PyRef qualified = PyRef::steal(PyObject_GetAttrString(object, "__qualname__"));
  if (!qualified) PyErr_Clear();
  const PyRef module = PyRef::steal(PyObject_GetAttrString(object, "__module__"));
  if (!module) PyErr_Clear();
  std::string name = bounded_utf8(qualified.get(), kMaxTypeName);
  if (name.empty()) name = type->tp_name;
  const std::string prefix = bounded_utf8(module.get(), kMaxTypeName);
  if (prefix.empty() || prefix == "builtins" || prefix == "__main__") return name;
  return prefix + "." + name;
}

std::string exception_line(PyObject* exception, size_t max_bytes) {
  std::string line = type_name(Py_TYPE(exception));
  const PyRef text = PyRef::steal(PyObject_Str(exception));
  if (!text) {
    PyErr_Clear();
    return line + ": <exception str() failed>";
  }
  const std::string shown = bounded_utf8(text.get(), max_bytes);
  if (!shown.empty()) line += ": " + shown;
  return line;
}

PyRef make_str(const std::string& utf8) {
  return PyRef::steal(
      PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "backslashreplace"));
}

}  // namespace pyplaypen::python
