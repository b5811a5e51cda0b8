// Not checks but measurements: python_tests --gtest_also_run_disabled_tests
// --gtest_filter='*Speed*'
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <vector>

#include "runtime/python/call_state.h"
#include "runtime/python/project.h"
#include "runtime/python/warm_up.h"
#include "tests/unit/python_call.h"

namespace pyplaypen::python {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double one_call(const std::string& code) {
  return std::stod(in_child([&] {
    char directory[] = "/tmp/pyplaypen-test-XXXXXX";
    const std::string workspace = ::mkdtemp(directory);
    warm_up(captured(), {});
    warm_up(captured(), {});
    settle(captured(), find_shared_state());
    wire::Request request;
    request.code = code;
    const Clock::time_point start = Clock::now();
    const wire::Report report =
        run_call(captured(), {}, request, {workspace, workspace, ::getpid()});
    const double time = microseconds_since(start);
    ::rmdir(workspace.c_str());
    return report.status == wire::ReportStatus::kOk ? std::to_string(time) : "-1";
  }));
}

TEST(PythonSpeed, DISABLED_Calls) {
  const std::pair<const char*, std::string> snippets[] = {
      {"1+1", "1+1"},
      {"comprehension", "sum(i * i for i in range(100))"},
      {"string", "text = 'a b c'\n' '.join(w.upper() for w in text.split())"},
      {"class",
       "class A:\n    def __init__(self, x): self.x = x\n    def f(self): return self.x + "
       "1\nA(1).f()"},
      {"json", "import json\njson.loads(json.dumps({'a': [1, 2, 3], 'b': None}))"},
      {"exception", "try:\n    1/0\nexcept ZeroDivisionError as e:\n    r = str(e)\nr"},
      {"datetime",
       "import datetime\n(datetime.date(2024, 1, 1) + datetime.timedelta(days=40)).isoformat()"},
  };
  for (const auto& [name, code] : snippets) {
    std::vector<double> times;
    for (int i = 0; i < 60; ++i) times.push_back(one_call(code));
    std::sort(times.begin(), times.end());
    std::printf("%-14s p50 %.0f us, p90 %.0f us\n", name, times[times.size() / 2],
                times[times.size() * 9 / 10]);
  }
}

TEST(PythonSpeed, DISABLED_Projection) {
  const char* values[] = {
      "list(range(150_000))",
      "['some text %d' % i for i in range(55_000)]",
      "['é€ %d' % i for i in range(70_000)]",
      "[i / 7 for i in range(50_000)]",
      "[{'id': i, 'name': 'n%d' % i, 'ok': True, 'none': None, 'x': [1, 2.5]} for i in "
      "range(15_000)]",
      "'x' * 999_000",
      "{str(i): i for i in range(60_000)}",
      "[10**50 + i for i in range(10_000)]",
  };
  for (const char* expression : values) {
    std::cout << in_child([&] {
      const std::string setup =
          "import json, time\nv = " + std::string(expression) +
          "\nbest = 1e9\nfor _ in range(9):\n"
          "    t = time.perf_counter()\n"
          "    s = json.dumps(v, separators=(',', ':'), ensure_ascii=False).encode()\n"
          "    best = min(best, time.perf_counter() - t)\n"
          "best *= 1e6";
      PyRun_SimpleString(setup.c_str());
      PyObject* names = captured().main_dict.get();
      const double dumps = PyFloat_AsDouble(PyDict_GetItemString(names, "best"));
      double best = 1e9;
      size_t size = 0;
      for (int i = 0; i < 9; ++i) {
        wire::Report report;
        const Clock::time_point start = Clock::now();
        project(captured(), {}, PyDict_GetItemString(names, "v"), 10'000'000, report);
        best = std::min(best, microseconds_since(start));
        size = report.value_json.size();
      }
      char line[300];
      std::snprintf(line, sizeof line,
                    "%7zu bytes: %6.0f us, json.dumps %6.0f us, %4.1f times  %s\n", size, best,
                    dumps, dumps / best, expression);
      return std::string(line);
    });
  }
}

}  // namespace
}  // namespace pyplaypen::python
