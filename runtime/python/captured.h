// What a call's evaluation and report need of the interpreter, taken before any code of a user ran.
#pragma once

#include <memory>

#include "runtime/python/main_file.h"
#include "runtime/python/memory_reserve.h"
#include "runtime/python/py_ref.h"

namespace pyplaypen::python {

// Interned once, in the zygote: CPython's cache of attributes compares names by address, so one made anew
// for each use misses it, and the entry written for it then is a page copied.
struct Names {
  PyRef body, closed, flush, gauss_next, tempdir, value;
};

// Strong references, made once in the zygote: code that rebinds names, clears sys.modules or
// empties builtins cannot take them away from its own report. Move-only; lives as long as the
// interpreter.
struct Captured {
  // The namespace of the code.
  PyRef main_module;
  PyRef main_dict;
  std::unique_ptr<MainFile> main_file;  // what `__main__.__file__` answers

  // Evaluation.
  PyRef file_name;  // "<sandbox_code>": co_filename of all code of the user's
  PyRef compile;    // builtins.compile, for syntax trees
  PyRef eval;       // builtins.eval
  PyRef ast_expr;   // _ast.Expr, _ast.Expression
  PyRef ast_expression;
  PyRef linecache;    // linecache.cache
  PyRef drive;        // coroutine function of two code objects; see evaluate.h
  PyRef asyncio_run;  // empty unless asyncio was loaded in the zygote

  // Projection.
  PyRef decimal;
  PyRef pure_path;
  PyRef big_digits;      // function of an int's magnitude and its bits; see project.h
  PyRef int_bit_length;  // unbound, so that a subclass's own is not asked

  // The call's own state.
  PyRef environ_data;  // the dict behind os.environ; bytes to bytes
  PyRef tzset;
  PyRef random_seed;  // _random.Random.seed, unbound

  Names names;

  // The end.
  PyRef join_threads;           // threading._shutdown
  PyRef thread_exit_functions;  // threading._threading_atexits, a list; empty where there is none
  PyRef run_exit_functions;     // atexit._run_exitfuncs
  PyRef standard_output;        // as sys.stdout and sys.stderr were
  PyRef standard_error;
  PyRef all_objects;  // gc.get_objects
  PyRef io_base;      // _io._IOBase

  MemoryReserve reserve;  // for a report about memory that ran out
};

// Runs in: zygote, after the interpreter's start, before preloads, GIL held. Imports what it needs;
// makes sys.stdout and sys.stderr UTF-8, backslashreplace and line buffered; installs the print hooks;
// sets sys.argv; gives `__main__` its `__file__`. Throws std::runtime_error with Python's message.
Captured capture();

}  // namespace pyplaypen::python
