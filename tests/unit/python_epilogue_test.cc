// The end of a call: threads, exit functions, open files, streams, and a report that survives it
// all.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>

#include "runtime/python/epilogue.h"
#include "runtime/python/sigsegv_hint.h"
#include "tests/unit/python_call.h"

namespace pyplaypen::python {
namespace {

using Status = wire::ReportStatus;

TEST(PythonEpilogue, ThreadsAreJoined) {
  const Outcome outcome = call(
      "import threading, time\n"
      "threading.Thread(target=lambda: (time.sleep(.1), print('late'))).start()\n1");
  EXPECT_EQ(outcome.report.value_json, "1");
  EXPECT_EQ(outcome.out, "late\n");
  EXPECT_EQ(value("import threading, time\n"
                  "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n1"),
            "1");
  const Outcome raises = call("import threading\nthreading.Thread(target=lambda: 1/0).start()\n1");
  EXPECT_EQ(raises.report.value_json, "1");
  EXPECT_NE(raises.err.find("ZeroDivisionError"), std::string::npos);
}

TEST(PythonEpilogue, ExitFunctionsRunAfterTheValueIsTaken) {
  const Outcome outcome = call(
      "import atexit\nl = [1]\n@atexit.register\n"
      "def f():\n    l.append(2)\n    print('bye', l)\nl");
  EXPECT_EQ(outcome.report.value_json, "[1]");
  EXPECT_EQ(outcome.out, "bye [1, 2]\n");
  const Outcome raises = call("import atexit\natexit.register(lambda: 1/0)\n1");
  EXPECT_EQ(raises.report.value_json, "1");
  EXPECT_NE(raises.err.find("ZeroDivisionError"), std::string::npos);
  const Outcome exits = call("import atexit, sys\natexit.register(sys.exit, 3)\n1");
  EXPECT_EQ(exits.report.value_json, "1");
  EXPECT_EQ(call("import atexit\natexit.register(print, 'bye')\nraise ValueError").out, "bye\n");
}

TEST(PythonEpilogue, DestructorsOfGlobalsRun) {
  const Outcome outcome = call("class A:\n    def __del__(self): print('gone')\na = A()\n1");
  EXPECT_EQ(outcome.report.value_json, "1");
  EXPECT_EQ(outcome.out, "gone\n");
}

TEST(PythonEpilogue, OpenFilesAreWritten) {
  const auto content = [](const std::string& code) {
    const Outcome outcome = call(code);
    return outcome.files.size() == 1 ? outcome.files[0].second
                                     : outcome.report.message + "no file" + outcome.err;
  };
  EXPECT_EQ(content("f = open('a.txt', 'w')\nf.write('text')\n1"), "text");
  EXPECT_EQ(
      content(
          "def g():\n    f = open('a.txt', 'w')\n    f.write('text')\n    raise ValueError\ng()"),
      "text");
  // Out of the reach of the globals: in a cycle, in another module, held by a thread.
  EXPECT_EQ(
      content("class C: pass\nc = C()\nc.me = c\nc.f = open('a.txt', 'w')\nc.f.write('text')\n1"),
      "text");
  EXPECT_EQ(content("import json\njson.f = open('a.txt', 'w')\njson.f.write('text')\n1"), "text");
  EXPECT_EQ(
      content("import threading, time\ndef g():\n    f = open('a.txt', 'w')\n    f.write('text')\n"
              "    e.set()\n    time.sleep(60)\n"
              "e = threading.Event()\nthreading.Thread(target=g, daemon=True).start()\ne.wait()"),
      "text");
  EXPECT_EQ(content("import gzip\nf = gzip.open('a.gz', 'wb')\nf.write(b'x')\n1").substr(0, 2),
            "\x1f\x8b");
}

TEST(PythonEpilogue, StreamsAreFlushed) {
  EXPECT_EQ(call("import sys\nsys.stdout.write('no newline')\n1").out, "no newline");
  EXPECT_EQ(call("import sys\nsys.stderr.write('no newline')\n1").err, "no newline");
  EXPECT_EQ(call("import sys\nsys.stdout.buffer.write(b'\\xff\\xfe')\n1").out, "\xff\xfe");
  EXPECT_EQ(call("import ctypes\nctypes.CDLL(None).puts(b'c')\n1").out, "c\n");
  EXPECT_EQ(
      call("import sys, io\nprint('a', end='')\nsys.stdout = io.StringIO()\nprint('b')\n1").out,
      "a");
  EXPECT_EQ(call("print('\\ud800é')").out, "\\ud800é\n");
}

TEST(PythonEpilogue, ReportSurvives) {
  for (const char* code : {
           "import sys, builtins, json\njson.dumps = None\nbuiltins.print = "
           "None\nsys.modules.clear()\n3",
           "import builtins\nbuiltins.__dict__.clear()\n3",
           "import sys\nsys.stdout = None\nsys.stderr = None\n3",
           "import sys\nsys.stdout.close()\n3",
           "import sys\ndel sys.stdout, sys.stderr\n3",
           "import os\nos.close(0); os.close(1); os.close(2)\n3",
           "import os, shutil\nshutil.rmtree(os.getcwd())\n3",
           "import threading, atexit, linecache\nthreading._shutdown = None\natexit._run_exitfuncs "
           "= None\n"
           "linecache.cache = None\n3",
           "import threading\nthreading._shutdown_locks = None\nthreading._main_thread = None\n3",
           "import sys\nsys.setrecursionlimit(50)\n3",
           "import os\nos.environ = None\nos.environ_ = 1\n3",
           "import gc\ngc.disable()\n3",
           "import signal\nsignal.setitimer(signal.ITIMER_REAL, 1000)\n3",
           "import sys\nsys.settrace(lambda f, *a: 1/0 if 'threading' in f.f_code.co_filename else "
           "None)\n3",
           "import sys\nsys.unraisablehook = None\nsys.excepthook = None\nsys.displayhook = "
           "None\n3",
           "class S:\n    def flush(self): raise SystemExit(4)\nimport sys\nsys.stdout = S()\n3",
           "class S:\n    closed = property(lambda s: 1/0)\nimport sys\nsys.stdout = S()\n3",
           "globals().clear()\n3",
           "import sys\nsys.modules['__main__'] = None\n3",
           "import decimal, pathlib\ndecimal.Decimal = None\npathlib.PurePath = None\n3",
       }) {
    EXPECT_EQ(value(code), "3") << code;
  }
  EXPECT_EQ(value("import sys\nsys.setrecursionlimit(50)\n[[[[1]]]]"), "[[[[1]]]]");
  EXPECT_EQ(
      value("import sys, decimal, datetime\nd = decimal.Decimal(1)\nt = datetime.date(1, 1, 1)\n"
            "del datetime, decimal\nsys.modules.clear()\n[d, t]"),
      "[\"1\",\"0001-01-01\"]");
  const Outcome raises = call(
      "import sys, builtins\nsys.modules.clear()\nbuiltins.__dict__.clear()\n"
      "sys.setrecursionlimit(50)\nnowhere");
  EXPECT_EQ(raises.report.status, Status::kRuntime);
  EXPECT_EQ(raises.report.message, "NameError: name 'nowhere' is not defined");
  EXPECT_EQ(raises.report.line.value_or(0), 5);
}

TEST(PythonEpilogue, CopiesFinishWithoutAReport) {
  const Outcome outcome = call(
      "import os, atexit\natexit.register(print, 'bye')\npid = os.fork()\n"
      "if pid: os.waitpid(pid, 0)\n42");
  EXPECT_EQ(outcome.report.value_json, "42");
  EXPECT_EQ(outcome.out, "bye\nbye\n");
  // Also when it is forked while the value is projected, or by an exit function.
  const Outcome projecting = call(
      "import os\nclass K:\n    def __str__(self):\n"
      "        pid = os.fork()\n        if pid: os.waitpid(pid, 0)\n"
      "        return 'k'\n{K(): 1}");
  EXPECT_EQ(projecting.report.value_json, "{\"k\":1}");
  const Outcome exiting = call(
      "import os, atexit\n@atexit.register\ndef f():\n    pid = os.fork()\n"
      "    if pid: os.waitpid(pid, 0)\n1");
  EXPECT_EQ(exiting.report.value_json, "1");
  EXPECT_TRUE(WIFEXITED(exiting.wait_status));
}

TEST(PythonEpilogue, UsageIsReported) {
  const wire::Report report = call("sum(range(3_000_000))").report;
  EXPECT_GT(report.cpu_microseconds, 1000U);
  EXPECT_GT(report.max_rss_bytes, 1U << 20);
}

TEST(PythonEpilogue, StackOverflowIsHinted) {
  const auto hint_of = [](const std::string& code) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    CallOptions options;
    options.before = [&] { install_sigsegv_hint(ends[1]); };
    const Outcome outcome = call(code, options);
    ::close(ends[1]);
    char hint = '-';
    const ssize_t got = ::read(ends[0], &hint, 1);
    ::close(ends[0]);
    EXPECT_TRUE(WIFSIGNALED(outcome.wait_status) && WTERMSIG(outcome.wait_status) == SIGSEGV)
        << code;
    return got == 1 ? hint : '-';
  };
  EXPECT_EQ(hint_of("import sys\nsys.setrecursionlimit(10**7)\n"
                    "class A:\n    def __repr__(self): return repr([self])\nrepr(A())"),
            kStackOverflowHint);
  EXPECT_EQ(hint_of("import ctypes\nctypes.string_at(0)"), '-');
  EXPECT_EQ(hint_of("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)"), '-');
}

}  // namespace
}  // namespace pyplaypen::python
