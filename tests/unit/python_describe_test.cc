// describe(): message, traceback and line of what left the code.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "runtime/python/describe.h"
#include "tests/unit/python_call.h"

namespace pyplaypen::python {
namespace {

using Status = wire::ReportStatus;

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(PythonDescribe, TracebackShowsTheUsersLines) {
  const wire::Report report = call("def f():\n    return 1/0  # here\nf()").report;
  EXPECT_EQ(report.status, Status::kRuntime);
  EXPECT_EQ(report.message, "ZeroDivisionError: division by zero");
  EXPECT_EQ(report.line.value_or(0), 2);
  EXPECT_EQ(report.traceback,
            "Traceback (most recent call last):\n"
            "  File \"<sandbox_code>\", line 3, in <module>\n"
            "    f()\n"
            "  File \"<sandbox_code>\", line 2, in f\n"
            "    return 1/0  # here\n"
            "ZeroDivisionError: division by zero\n");
}

TEST(PythonDescribe, Messages) {
  EXPECT_EQ(call("raise KeyError('a')").report.message, "KeyError: 'a'");
  EXPECT_EQ(call("raise KeyboardInterrupt").report.message, "KeyboardInterrupt");
  EXPECT_EQ(call("class E(Exception): pass\nraise E('x')").report.message, "E: x");
  EXPECT_EQ(
      call("import json\njson.loads('{')").report.message.find("json.decoder.JSONDecodeError: "),
      0U);
  EXPECT_EQ(
      call("class E(Exception):\n    def __str__(self): raise SystemExit\nraise E").report.message,
      "E: <exception str() failed>");
  EXPECT_EQ(call("raise ValueError('\\ud800')").report.message, "ValueError: \\ud800");
  EXPECT_LE(call("raise ValueError('é' * 10**7)").report.message.size(), 8100U);
  EXPECT_EQ(call("raise 5").report.message, "TypeError: exceptions must derive from BaseException");
}

TEST(PythonDescribe, LineIsTheDeepestOfTheUsersSource) {
  const wire::Report report = call("import json\ndef f():\n    json.loads('{')\n\nf()").report;
  EXPECT_EQ(report.line.value_or(0), 3);
  EXPECT_NE(report.traceback.find("/json/decoder.py"), std::string::npos);
  // A line of a file of the library.
  EXPECT_NE(report.traceback.find("return _default_decoder.decode(s)"), std::string::npos)
      << report.traceback;
  EXPECT_EQ(
      call("import functools\ndef f(a, b):\n    raise ValueError\nfunctools.reduce(f, [1, 2])")
          .report.line.value_or(0),
      3);
}

TEST(PythonDescribe, FramesAreBounded) {
  const wire::Report report =
      call("def f(n):\n    if n == 0: raise ValueError('deep')\n    f(n - 1)\nf(100)").report;
  EXPECT_EQ(count(report.traceback, "  File "), 20);
  EXPECT_NE(report.traceback.find("  ... 82 frames omitted\n"), std::string::npos)
      << report.traceback;
  EXPECT_EQ(report.line.value_or(0), 2);
  const wire::Report chained =
      call(
          "def f(n):\n    if n == 0: raise ValueError('deep')\n    f(n - 1)\n"
          "def g(n):\n    if n == 0:\n        try: f(50)\n        except ValueError: raise "
          "KeyError('k')\n"
          "    g(n - 1)\ng(100)")
          .report;
  EXPECT_LE(count(chained.traceback, "  File "), 20);
  EXPECT_NE(chained.traceback.find("During handling of the above exception"), std::string::npos);
  EXPECT_NE(chained.traceback.find("ValueError: deep\n\nDuring"), std::string::npos);
}

TEST(PythonDescribe, MillionFramesInTime) {
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome =
      call("import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return f(n + 1)\nf(0)");
  ASSERT_TRUE(outcome.reported);
  EXPECT_EQ(outcome.report.status, Status::kRuntime) << outcome.report.message;
  EXPECT_EQ(count(outcome.report.traceback, "  File "), 20);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8));
}

TEST(PythonDescribe, Chains) {
  const wire::Report cause =
      call("try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise ValueError('v') from e")
          .report;
  EXPECT_EQ(cause.message, "ValueError: v");
  EXPECT_EQ(cause.line.value_or(0), 4);
  EXPECT_NE(cause.traceback.find("direct cause"), std::string::npos);
  EXPECT_LT(cause.traceback.find("ZeroDivisionError"), cause.traceback.find("ValueError: v"));
  const wire::Report hidden =
      call("try:\n    1/0\nexcept ZeroDivisionError:\n    raise ValueError('v') from None").report;
  EXPECT_EQ(hidden.traceback.find("ZeroDivisionError:"), std::string::npos);
  const wire::Report circle =
      call("a = ValueError('a')\nb = ValueError('b')\na.__cause__ = b\nb.__cause__ = a\nraise a")
          .report;
  EXPECT_EQ(count(circle.traceback, "ValueError: b"), 1);
  const wire::Report endless = call(
                                   "e = ValueError('0')\nfor i in range(10**5):\n    n = "
                                   "ValueError(str(i)); n.__cause__ = e; e = n\nraise e")
                                   .report;
  EXPECT_LE(count(endless.traceback, "ValueError"), 5);
}

TEST(PythonDescribe, GroupsAndNotes) {
  const wire::Report report =
      call(
          "def f(): raise KeyError('inner')\ntry: f()\nexcept KeyError as e: k = e\n"
          "g = ExceptionGroup('many', [k, ExceptionGroup('two', [TypeError('t')])])\n"
          "g.add_note('a note')\nraise g")
          .report;
  EXPECT_EQ(report.message, "ExceptionGroup: many (2 sub-exceptions)");
  for (const char* part : {"KeyError: 'inner'", "TypeError: t", "a note", "exception 1 of 2",
                           "def f(): raise KeyError('inner')"}) {
    EXPECT_NE(report.traceback.find(part), std::string::npos) << part << report.traceback;
  }
  EXPECT_LE(
      call("raise ExceptionGroup('m', [ValueError('x' * 10000)] * 10000)").report.traceback.size(),
      70000U);
}

TEST(PythonDescribe, SyntaxErrors) {
  const wire::Report report = call("x = 1\nif x\n    y = 2\n").report;
  EXPECT_EQ(report.status, Status::kSyntax);
  EXPECT_EQ(report.line.value_or(0), 2);
  EXPECT_EQ(report.message, "SyntaxError: expected ':' (<sandbox_code>, line 2)");
  EXPECT_EQ(report.traceback,
            "  File \"<sandbox_code>\", line 2\n"
            "    if x\n"
            "        ^\n"
            "SyntaxError: expected ':' (<sandbox_code>, line 2)\n");
  EXPECT_NE(call("if 1:\n  x = $").report.traceback.find("    x = $\n        ^\n"),
            std::string::npos);
}

TEST(PythonDescribe, NoFramesOfOursOrOfTheEventLoop) {
  const wire::Report report = call(
                                  "import asyncio\nawait asyncio.sleep(0)\nasync def f():\n    "
                                  "raise ValueError('v')\nawait f()")
                                  .report;
  EXPECT_EQ(report.message, "ValueError: v");
  EXPECT_EQ(report.line.value_or(0), 4);
  EXPECT_EQ(report.traceback.find("asyncio/"), std::string::npos) << report.traceback;
  EXPECT_EQ(report.traceback.find("pyplaypen"), std::string::npos) << report.traceback;
  EXPECT_EQ(count(report.traceback, "  File "), 2) << report.traceback;
}

TEST(PythonDescribe, SourceIsTheCallsOwnNotWhatLinecacheSays) {
  EXPECT_NE(
      call("import linecache\nlinecache.cache.clear()\n1/0").report.traceback.find("    1/0\n"),
      std::string::npos);
  // A FIFO as a file name neither blocks nor is read.
  EXPECT_EQ(call("import os\nos.mkfifo('/tmp/pyplaypen-test-fifo')\ntry:\n"
                 "    exec(compile('1/0', '/tmp/pyplaypen-test-fifo', 'exec'))\n"
                 "finally: os.remove('/tmp/pyplaypen-test-fifo')")
                .report.message,
            "ZeroDivisionError: division by zero");
}

TEST(PythonDescribe, Exits) {
  for (const char* code : {"import sys\nsys.exit(0)", "import sys\nsys.exit()", "raise SystemExit",
                           "exit(0)", "raise SystemExit(False)"}) {
    const wire::Report report = call(code).report;
    EXPECT_EQ(report.status, Status::kOk) << code;
    EXPECT_EQ(report.value_json, "null");
    EXPECT_EQ(report.message, "");
  }
  const wire::Report number = call("print('a')\nimport sys\nsys.exit(3)").report;
  EXPECT_EQ(number.status, Status::kRuntime);
  EXPECT_EQ(number.message, "SystemExit: 3");
  EXPECT_EQ(number.exit_code.value_or(-1), 3);
  EXPECT_EQ(number.line.value_or(0), 3);
  const wire::Report text = call("import sys\nsys.exit('bad')").report;
  EXPECT_EQ(text.status, Status::kRuntime);
  EXPECT_EQ(text.message, "bad");
  EXPECT_EQ(text.exit_code.value_or(-1), 1);
  EXPECT_EQ(call("raise SystemExit(10**30)").report.exit_code.value_or(0), -1);
  EXPECT_EQ(call("raise SystemExit([1, 2])").report.message, "[1, 2]");
  EXPECT_EQ(call("import asyncio\nawait asyncio.sleep(0)\nraise SystemExit(4)")
                .report.exit_code.value_or(0),
            4);
}

}  // namespace
}  // namespace pyplaypen::python
