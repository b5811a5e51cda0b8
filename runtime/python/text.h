// Python's strings and names as bounded UTF-8.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/python/py_ref.h"

namespace pyplaypen::python {

// At most about max_bytes of a str, "..." at the end when cut; what has no UTF-8 form (lone
// surrogates) is escaped. Runs no user code, sets no exception. Not a str: "".
std::string bounded_utf8(PyObject* text, size_t max_bytes);

// str(object) or repr(object) through bounded_utf8. Runs user code; whatever it raises is swallowed
// and gives "<str() failed>" or the like.
std::string bounded_str(PyObject* object, size_t max_bytes);
std::string bounded_repr(PyObject* object, size_t max_bytes);

// "module.Qualified.Name", without the module where Python leaves it out in messages (builtins,
// __main__). Runs no user code but a metaclass's.
std::string type_name(PyTypeObject* type);

// "Type: text" as Python prints an exception's last line. Runs user code; never raises.
std::string exception_line(PyObject* exception, size_t max_bytes);

// A new str from bytes that ought to be UTF-8; what is not is escaped.
PyRef make_str(const std::string& utf8);

}  // namespace pyplaypen::python
