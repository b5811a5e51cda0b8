#include "runtime/python/captured.h"

#include <stdexcept>
#include <string>

#include "runtime/python/evaluate.h"
#include "runtime/python/print_hooks.h"
#include "runtime/python/project.h"
#include "runtime/python/py_error.h"
#include "runtime/python/source.h"
#include "runtime/python/text.h"

namespace pyplaypen::python {
namespace {

constexpr size_t kMaxMessage = 500;

[[noreturn]] void throw_python_error(const std::string& what) {
  const PyRef exception = take_failure();
  throw std::runtime_error(what + ": " + exception_line(exception.get(), kMaxMessage));
}

PyRef intern(const char* name) {
  PyRef result = PyRef::steal(PyUnicode_InternFromString(name));
  if (!result) throw_python_error("interning");
  return result;
}

PyRef import(const char* module) {
  PyRef result = PyRef::steal(PyImport_ImportModule(module));
  if (!result) throw_python_error(std::string("importing ") + module);
  return result;
}

PyRef attribute(const PyRef& object, const char* name) {
  PyRef result = PyRef::steal(PyObject_GetAttrString(object.get(), name));
  if (!result) throw_python_error(std::string("looking up ") + name);
  return result;
}

PyRef from(const char* module, const char* name) { return attribute(import(module), name); }

PyRef int_method(const char* name) {
  return attribute(PyRef::borrow(reinterpret_cast<PyObject*>(&PyLong_Type)), name);
}

// A function of ours in Python. Its globals are its own, so that it depends on nothing that user
// code can rebind.
PyRef define(const char* name, const char* source, const PyRef& globals) {
  const PyRef code = PyRef::steal(Py_CompileString(source, "<pyplaypen>", Py_file_input));
  if (!code) throw_python_error("compiling");
  if (!PyRef::steal(PyEval_EvalCode(code.get(), globals.get(), globals.get()))) {
    throw_python_error("evaluating");
  }
  return PyRef::borrow(PyDict_GetItemString(globals.get(), name));
}

PyRef make_drive() {
  const PyRef globals = PyRef::steal(PyDict_New());
  if (!globals) throw_python_error("drive");
  return define("drive", kDriveSource, globals);
}

PyRef make_big_digits(const PyRef& decimal) {
  const PyRef module = import("decimal");
  const PyRef no_arguments = PyRef::steal(PyTuple_New(0));
  const PyRef options = PyRef::steal(
      Py_BuildValue("{s:N,s:N,s:N,s:[]}", "prec", attribute(module, "MAX_PREC").release(), "Emax",
                    attribute(module, "MAX_EMAX").release(), "Emin",
                    attribute(module, "MIN_EMIN").release(), "traps"));
  const PyRef context = no_arguments && options
                            ? PyRef::steal(PyObject_Call(attribute(module, "Context").get(),
                                                         no_arguments.get(), options.get()))
                            : PyRef();
  const PyRef globals =
      context ? PyRef::steal(Py_BuildValue("{s:O,s:O,s:O}", "context", context.get(), "Decimal",
                                           decimal.get(), "str", &PyUnicode_Type))
              : PyRef();
  if (!globals) throw_python_error("decimal");
  return define("big_digits", kBigDigitsSource, globals);
}

// A stream that the host closed is None and stays so.
PyRef standard_stream(const char* name) {
  PyRef stream = PyRef::borrow(PySys_GetObject(name));
  if (!stream || stream.get() == Py_None) return {};
  const PyRef method = attribute(stream, "reconfigure");
  const PyRef no_arguments = PyRef::steal(PyTuple_New(0));
  const PyRef options = PyRef::steal(Py_BuildValue("{s:s,s:s,s:O}", "encoding", "utf-8", "errors",
                                                   "backslashreplace", "line_buffering", Py_True));
  if (!no_arguments || !options ||
      !PyRef::steal(PyObject_Call(method.get(), no_arguments.get(), options.get()))) {
    throw_python_error(std::string("configuring ") + name);
  }
  return stream;
}

}  // namespace

Captured capture() {
  Captured result;
  result.main_module = import("__main__");
  result.main_dict = attribute(result.main_module, "__dict__");
  result.main_file = std::make_unique<MainFile>();
  if (!result.main_file->attach(result.main_module.get())) throw_python_error("__main__");

  result.file_name = intern(kSourceName);
  result.names = {intern("body"), intern("closed"), intern("flush"), intern("gauss_next"), intern("tempdir"), intern("value")};
  result.compile = from("builtins", "compile");
  result.eval = from("builtins", "eval");
  result.ast_expr = from("_ast", "Expr");
  result.ast_expression = from("_ast", "Expression");
  result.linecache = from("linecache", "cache");
  result.drive = make_drive();
  const PyRef asyncio = PyRef::steal(PyImport_GetModule(make_str("asyncio").get()));
  if (asyncio) result.asyncio_run = attribute(asyncio, "run");
  PyErr_Clear();

  if (!import_datetime()) throw_python_error("datetime");
  result.decimal = from("decimal", "Decimal");
  result.big_digits = make_big_digits(result.decimal);
  result.pure_path = from("pathlib", "PurePath");
  result.int_bit_length = int_method("bit_length");

  result.environ_data = attribute(from("os", "environ"), "_data");
  result.tzset = from("time", "tzset");
  result.random_seed = attribute(from("_random", "Random"), "seed");

  const PyRef threading = import("threading");
  result.join_threads = attribute(threading, "_shutdown");
  result.thread_exit_functions =
      PyRef::steal(PyObject_GetAttrString(threading.get(), "_threading_atexits"));
  PyErr_Clear();
  result.run_exit_functions = from("atexit", "_run_exitfuncs");
  result.standard_output = standard_stream("stdout");
  result.standard_error = standard_stream("stderr");
  if (!install_print_hooks()) throw_python_error("printing exceptions");
  result.all_objects = from("gc", "get_objects");
  result.io_base = from("_io", "_IOBase");

  const PyRef argv = PyRef::steal(Py_BuildValue("[s]", kSourceName));
  if (!argv || PySys_SetObject("argv", argv.get()) != 0) throw_python_error("sys.argv");
  return result;
}

}  // namespace pyplaypen::python
