// run_call: what a call's code evaluates to and the names that it sees.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "runtime/python/warm_up.h"
#include "tests/unit/python_call.h"

namespace pyplaypen::python {
namespace {

using Status = wire::ReportStatus;

TEST(PythonEvaluate, LastExpressionIsTheValue) {
  EXPECT_EQ(value("1+1"), "2");
  EXPECT_EQ(value("x = 6\nx * 7  # a comment after it\n"), "42");
  EXPECT_EQ(value("x = 1; x"), "1");
  EXPECT_EQ(value("(1,\n 2\n)\n"), "[1,2]");
  EXPECT_EQ(value("a = [2]\n1, *a"), "[1,2]");
  EXPECT_EQ(value("'''doc'''"), "\"doc\"");
  EXPECT_EQ(value("f'{1+1}'"), "\"2\"");
  EXPECT_EQ(value("def f(a):\n  return a\nf(\n  3\n)\n\n# end\n"), "3");
  EXPECT_EQ(value("(y := 3)"), "3");
}

TEST(PythonEvaluate, StatementHasNoValue) {
  EXPECT_EQ(value("x = 1"), "null");
  EXPECT_EQ(value(""), "null");
  EXPECT_EQ(value("# nothing"), "null");
  EXPECT_EQ(value("5\nx = 1\n"), "null");
  EXPECT_EQ(value("if 1:\n  5\n"), "null");
  EXPECT_EQ(value("if 0:\n  5\nelse:\n  6\n"), "null");
  EXPECT_EQ(value("for i in [1]: i"), "null");
  EXPECT_EQ(value("5; x = 1"), "null");
}

TEST(PythonEvaluate, OneNamespaceIsMain) {
  EXPECT_EQ(value("b = 2\ndef f(): return b\n[f() * i for i in range(3)]"), "[0,2,4]");
  EXPECT_EQ(value("__name__"), "\"__main__\"");
  EXPECT_EQ(value("import sys\nx = 3\nsys.modules['__main__'].x"), "3");
  EXPECT_EQ(value("import sys\nsys.modules['__main__'].__dict__ is globals()"), "true");
  EXPECT_EQ(value("x = 1\nif __name__ == '__main__':\n    x = 2\nx"), "2");
  EXPECT_EQ(value("import pickle\nclass A: pass\nlen(pickle.dumps(A())) > 0"), "true");
  EXPECT_EQ(value("import sys\nsys.argv"), "[\"<sandbox_code>\"]");
  EXPECT_EQ(value("sorted(n for n in globals() if not n.startswith('__'))"), "[]");
}

TEST(PythonEvaluate, TopLevelAwait) {
  EXPECT_EQ(value("import asyncio\nawait asyncio.sleep(0)\n41 + 1"), "42");
  EXPECT_EQ(value("import asyncio\nawait asyncio.sleep(0, 'x')"), "\"x\"");
  EXPECT_EQ(value("import asyncio\nawait asyncio.sleep(0)\nx = 1"), "null");
  EXPECT_EQ(
      value(
          "import asyncio\nt = asyncio.ensure_future(asyncio.sleep(0, 4)); await asyncio.sleep(0)\n"
          "await t"),
      "4");
  EXPECT_EQ(value("import asyncio\nasync def f(): return 5\nasyncio.run(f())"), "5");
  EXPECT_EQ(value("import asyncio\nasync def f(): return 5\nx = asyncio.run(f())\n"
                  "await asyncio.sleep(0, x)"),
            "5");
  const std::string work = "import asyncio\nasync def work(n):\n    await asyncio.sleep(0)\n    return n\n";
  EXPECT_EQ(value(work + "t = asyncio.create_task(work(6))\nawait t"), "6");
  EXPECT_EQ(value(work + "tasks = [asyncio.create_task(work(n)) for n in range(3)]\n"
                         "await asyncio.gather(*tasks)"),
            "[0,1,2]");
  EXPECT_EQ(value("import asyncio\nloop = asyncio.get_running_loop()\n"
                  "done = loop.create_future()\nloop.call_soon(done.set_result, 7)\nawait done"),
            "7");
  EXPECT_EQ(value("[x async for x in g()]\n"), "status 2: NameError: name 'g' is not defined");
}

TEST(PythonEvaluate, GetsourceOfFunctionsAndClasses) {
  EXPECT_EQ(value("import inspect\ndef f():\n    return 1\ninspect.getsource(f)"),
            R"("def f():\n    return 1\n")");
  EXPECT_EQ(value("import inspect\nclass A:\n    x = 1\ninspect.getsource(A)"),
            R"("class A:\n    x = 1\n")");
}

TEST(PythonEvaluate, UncaughtExceptionsElsewhereShowTheUsersLines) {
  const auto shown = [](const std::string& code) {
    const Outcome outcome = call(code);
    EXPECT_EQ(outcome.report.value_json, "3") << outcome.report.message;
    return outcome.err;
  };
  const std::string line = "in f\n    return 1 / 0  # here\n";
  const std::string f = "def f(*_):\n    return 1 / 0  # here\n";
  const std::string thread = shown(f + "import threading\nt = threading.Thread(target=f, name='T')\n"
                                       "t.start(); t.join()\n3");
  EXPECT_EQ(thread.find("Exception in thread T:\nTraceback (most recent call last):\n"), 0U) << thread;
  EXPECT_NE(thread.find(line), std::string::npos) << thread;
  EXPECT_NE(thread.find("\nZeroDivisionError: division by zero\n"), std::string::npos) << thread;
  const std::string copy = shown(f + "import os\nif os.fork() == 0: f()\nos.wait()\n3");
  EXPECT_NE(copy.find(line), std::string::npos) << copy;
  const std::string finalizer = shown(f + "class A: __del__ = f\nA()\n3");
  EXPECT_EQ(finalizer.find("Exception ignored in: <function f at "), 0U) << finalizer;
  EXPECT_NE(finalizer.find(line), std::string::npos) << finalizer;
  const std::string at_exit = shown(f + "import atexit\natexit.register(f)\n3");
  EXPECT_EQ(at_exit.find("Exception ignored in atexit callback: <function f at "), 0U) << at_exit;
  EXPECT_NE(at_exit.find(line), std::string::npos) << at_exit;

  EXPECT_EQ(shown("import sys, threading\n"
                  "threading.Thread(target=sys.exit).start()\n3"),
            "");
  EXPECT_EQ(value("import sys, threading\n"
                  "[sys.excepthook is sys.__excepthook__, sys.unraisablehook is sys.__unraisablehook__,\n"
                  " threading.excepthook is threading.__excepthook__]"),
            "[true,true,true]");
  const std::string own = shown(f + "import threading\nthreading.excepthook = lambda args: print(args.exc_type, "
                                    "file=__import__('sys').stderr)\n"
                                    "t = threading.Thread(target=f)\nt.start(); t.join()\n3");
  EXPECT_EQ(own, "<class 'ZeroDivisionError'>\n");
}

TEST(PythonEvaluate, FileNameLeadsToTheWorkspace) {
  EXPECT_EQ(value("import os\nos.path.dirname(__file__) == os.getcwd()"), "true");
  EXPECT_EQ(value("import sys\nsys.modules['__main__'].__file__ = 'x'\n"
                  "sys.modules['__main__'].__file__"),
            "\"x\"");
}

TEST(PythonEvaluate, SpawnAndForkProcesses) {
  EXPECT_EQ(value("import multiprocessing as m\ndef sq(x): return x * x\n"
                  "with m.get_context('fork').Pool(2) as p: r = p.map(sq, [1, 2, 3])\nr"),
            "[1,4,9]");
  const Outcome unguarded = call(
      "import multiprocessing as m\nc = m.get_context('spawn')\n"
      "p = c.Process(target=print, args=('hi',))\np.start(); p.join()\np.exitcode\n");
  EXPECT_EQ(unguarded.report.value_json, "0") << unguarded.report.message << unguarded.err;
  EXPECT_EQ(unguarded.out, "hi\n");
  const Outcome guarded = call(
      "import multiprocessing as m\ndef sq(x): return x * x\nr = None\n"
      "if __name__ == '__main__':\n"
      "    with m.get_context('spawn').Pool(1) as p: r = p.map(sq, [1, 2, 3])\nr\n");
  EXPECT_EQ(guarded.report.value_json, "[1,4,9]") << guarded.report.message << guarded.err;
  const Outcome of_guarded_names = call(
      "import multiprocessing as m\ndef sq(x): return x * x\n"
      "if __name__ == '__main__':\n"
      "    with m.get_context('spawn').Pool(1) as p: r = p.map(sq, [1, 2, 3])\n[\n  r,\n]\n");
  EXPECT_EQ(of_guarded_names.report.value_json, "[[1,4,9]]")
      << of_guarded_names.report.message << of_guarded_names.err;
  EXPECT_EQ(of_guarded_names.err, "");
}

TEST(PythonEvaluate, SourceEncodings) {
  EXPECT_EQ(value("# -*- coding: latin-1 -*-\n'\xe9'"), "\"é\"");
  EXPECT_EQ(value("\xef\xbb\xbf'é'"), "\"é\"");
  EXPECT_EQ(value("'é€😀'"), "\"é€😀\"");
  EXPECT_EQ(value("x = 1\r\nx + 1\r\n"), "2");
  EXPECT_EQ(value("x = 1\rx + 1\r"), "2");
  EXPECT_EQ(value("x = 1\n\fx + 1\n"), "2");
}

TEST(PythonEvaluate, WhatDoesNotCompileIsSyntax) {
  struct Case {
    std::string code;
    std::string message;
    int64_t line;
  };
  std::string deep(300, '(');
  const Case cases[] = {
      {"x = = 1", "invalid syntax", 1},
      {std::string("x = 1\n\0", 7), "NUL", 2},
      {"x = 1\ny = '\xff'", "UTF-8", 2},
      {"# \xff", "UTF-8", 1},
      {"'\xed\xa0\x80'", "UTF-8", 1},
      {"# coding: nonsense\n1", "nonsense", 0},
      {"eval('1')\n" + deep + "1", "parenthes", 2},
      {"  x = 1\n y = 2", "indent", 1},
      {"return 1", "outside function", 1},
      {"a = 1\nawait = 3", "", 2},
      {"from __future__ import braces", "chance", 1},
      {"x = 1\nfrom __future__ import annotations", "__future__", 2},
  };
  for (const Case& test : cases) {
    const Outcome outcome = call(test.code);
    EXPECT_EQ(outcome.report.status, Status::kSyntax) << test.code;
    EXPECT_NE(outcome.report.message.find(test.message), std::string::npos)
        << outcome.report.message;
    EXPECT_EQ(outcome.report.line.value_or(0), test.line) << test.code << outcome.report.message;
    EXPECT_EQ(outcome.report.value_json, "null");
  }
  std::string additions = "0";
  for (int i = 0; i < 200000; ++i) additions += "+1";
  EXPECT_EQ(call(additions).report.status, Status::kSyntax);
  std::string minuses(100000, '-');
  EXPECT_EQ(call("x=" + minuses + "1").report.status, Status::kSyntax);
}

TEST(PythonEvaluate, SyntaxErrorOfOtherSourceIsRuntime) {
  const Outcome outcome = call("x = 1\nexec('x = = 2')");
  EXPECT_EQ(outcome.report.status, Status::kRuntime);
  EXPECT_EQ(outcome.report.line.value_or(0), 2);
}

TEST(PythonEvaluate, ForkedCopyNeverReports) {
  const Outcome outcome = call(
      "import os\npid = os.fork()\n"
      "if pid: s = os.waitpid(pid, 0)[1]\nprint('p' if pid else 'c')\n"
      "if not pid: raise SystemExit(7)\ns >> 8");
  EXPECT_EQ(outcome.report.value_json, "7") << outcome.report.message;
  EXPECT_EQ(outcome.out, "c\np\n");
  const Outcome raises = call(
      "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n"
      "if not pid: raise ValueError('in the copy')\n5");
  EXPECT_EQ(raises.report.value_json, "5");
  EXPECT_NE(raises.err.find("ValueError: in the copy"), std::string::npos);
}

TEST(PythonEvaluate, WarmUpLeavesNoTrace) {
  const std::string before =
      "import sys, json, re, datetime, random, linecache, numpy, pandas\n"
      "def state(): return (random.getstate(), str(numpy.random.get_state()), "
      "sorted(sys.modules),\n"
      "    sorted(linecache.cache), sorted(globals()))\n"
      "before = None\nbefore = state()\n";
  EXPECT_EQ(in_child([&]() -> std::string {
              if (PyRun_SimpleString(before.c_str()) != 0) return "cannot begin";
              // The first time it makes loaded modules load what they load on first use.
              warm_up(captured(), {});
              if (PyRun_SimpleString("before = state()") != 0) return "cannot begin";
              warm_up(captured(), {});
              return PyRun_SimpleString(
                         "for a, b in zip(state(), before): assert a == b, set(a) ^ set(b)") == 0
                         ? "same"
                         : "changed";
            }),
            "same");
  CallOptions warm;
  warm.first = "import json, re, datetime, random, collections, itertools, math, functools";
  warm.warm_up = true;
  const Outcome outcome = call("1 + 1", warm);
  EXPECT_EQ(outcome.report.value_json, "2");
  EXPECT_EQ(outcome.out + outcome.err, "");
}

}  // namespace
}  // namespace pyplaypen::python
