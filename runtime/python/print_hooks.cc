#include "runtime/python/print_hooks.h"

#include "runtime/python/py_ref.h"

namespace pyplaypen::python {

#if PY_VERSION_HEX >= 0x030D0000

bool install_print_hooks() { return true; }

#else

namespace {

// As CPython's in what they print, the last 1 000 frames at most included. Each makes its text before it
// writes any, so that an original that has to print it instead prints it alone.
constexpr char kSource[] = R"(
import sys, threading
from traceback import format_exception

def format(kind, value, trace):
    limit = None if hasattr(sys, 'tracebacklimit') else -1000
    return ''.join(format_exception(kind, value, trace, limit))

def put(stream, text):
    try:
        stream.write(text)
        stream.flush()
    except Exception:
        pass

def install():
    original = sys.excepthook
    def excepthook(exctype, value, traceback, /):
        try:
            text = format(exctype, value, traceback)
        except BaseException:
            return original(exctype, value, traceback)
        if sys.stderr is not None:
            put(sys.stderr, text)
    sys.excepthook = sys.__excepthook__ = excepthook

    original_of_threads = threading.excepthook
    def thread_excepthook(args, /):
        stream = sys.stderr
        if stream is None and args.thread is not None:
            stream = args.thread._stderr
        try:
            if args.exc_type == SystemExit or stream is None:
                return
            name = threading.get_ident() if args.thread is None else args.thread.name
            text = f'Exception in thread {name}:\n' + format(args.exc_type, args.exc_value, args.exc_traceback)
        except BaseException:
            return original_of_threads(args)
        put(stream, text)
    threading.excepthook = threading.__excepthook__ = thread_excepthook

    original_of_unraisable = sys.unraisablehook
    def unraisablehook(unraisable, /):
        if unraisable.exc_value is None:
            return original_of_unraisable(unraisable)
        try:
            title = unraisable.err_msg or 'Exception ignored in'
            if unraisable.object is not None:
                title += f': {unraisable.object!r}'
            elif not unraisable.err_msg:
                title = ''
            else:
                title += ':'
            text = format(unraisable.exc_type, unraisable.exc_value, unraisable.exc_traceback)
        except BaseException:
            return original_of_unraisable(unraisable)
        if sys.stderr is not None:
            put(sys.stderr, title + '\n' + text if title else text)
    sys.unraisablehook = sys.__unraisablehook__ = unraisablehook

install()
)";

}  // namespace

bool install_print_hooks() {
  const PyRef code = PyRef::steal(Py_CompileString(kSource, "<pyplaypen>", Py_file_input));
  const PyRef builtins = PyRef::steal(PyDict_Copy(PyEval_GetBuiltins()));  // which user code may empty
  const PyRef globals = code && builtins ? PyRef::steal(Py_BuildValue("{s:O}", "__builtins__", builtins.get())) : PyRef();
  return globals && PyRef::steal(PyEval_EvalCode(code.get(), globals.get(), globals.get()));
}

#endif

}  // namespace pyplaypen::python
