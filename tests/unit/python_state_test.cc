// What is a call's own: environment, zone, seeds, signals, import path; and the globals_provider.
#include <gtest/gtest.h>

#include "runtime/python/call_state.h"
#include "tests/unit/python_call.h"

namespace pyplaypen::python {
namespace {

using Status = wire::ReportStatus;

TEST(PythonState, EnvironmentIsReplaced) {
  ::setenv("PYPLAYPEN_TEST_HOST", "host", 1);  // known to C only
  CallOptions options;
  options.environment = wire::Environment{{"A", "1"}, {"B", "é=\xff"}, {"PATH", "/usr/bin:/bin"}};
  EXPECT_EQ(value("import os\nsorted(os.environ)", options), "[\"A\",\"B\",\"PATH\"]");
  EXPECT_EQ(value("import os\nos.environb[b'B'] == 'é='.encode() + b'\\xff'", options), "true");
  EXPECT_EQ(
      value("import subprocess\nsubprocess.run(['env'], capture_output=True).stdout.count(b'HOST')",
            options),
      "0");
  EXPECT_EQ(value("import os\nos.environ['C'] = '3'\nos.popen('echo $C$A').read()", options),
            "\"31\\n\"");
  EXPECT_EQ(value("import os\n'PATH' in os.environ"), "true");
}

TEST(PythonState, TimeZone) {
  CallOptions options;
  options.environment = wire::Environment{{"TZ", "Asia/Tokyo"}};
  EXPECT_EQ(
      value("import time\n[time.strftime('%Z', time.localtime(0)), time.tzname[0], time.timezone]",
            options),
      "[\"JST\",\"JST\",-32400]");
  options.environment = wire::Environment{};
  EXPECT_EQ(value("import time\ntime.strftime('%Z', time.localtime(0))", options), "\"UTC\"");
}

TEST(PythonState, SeedsDiffer) {
  for (const char* code :
       {"import random\nrandom.random()", "import random\nrandom.gauss(0, 1)",
        "import numpy\nfloat(numpy.random.random())", "import tempfile\ntempfile.mkdtemp()"}) {
    CallOptions options;
    options.first =
        "import random, numpy, tempfile; random.seed(1); numpy.random.seed(1); "
        "random.gauss(0, 1); tempfile.gettempdir()";
    EXPECT_NE(value(code, options), value(code, options)) << code;
  }
  CallOptions options;
  options.first = "import tempfile; tempfile.tempdir = '/nowhere'";
  options.environment = wire::Environment{{"TMPDIR", "/var/tmp"}};
  EXPECT_EQ(value("import tempfile\ntempfile.gettempdir()", options), "\"/var/tmp\"");
}

TEST(PythonState, OwnModulesHideNothing) {
  EXPECT_EQ(value("open('random.py', 'w').write('raise RuntimeError')\n"
                  "open('json.py', 'w').write('raise RuntimeError')\n"
                  "import tempfile\ntempfile.gettempdir() != ''"),
            "true");
  EXPECT_EQ(value("open('mine.py', 'w').write('x = 5')\nimport mine\nmine.x"), "5");
  EXPECT_EQ(value("import sys, os\nsys.path[-1] == os.getcwd()"), "true");
}

TEST(PythonState, SignalsRaise) {
  EXPECT_EQ(value("import os\nr, w = os.pipe()\nos.close(r)\ntry:\n    os.write(w, b'x')\n"
                  "except BrokenPipeError:\n    ok = True\nok"),
            "true");
  EXPECT_EQ(value("import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\nn = None\n"
                  "try:\n    f = open('f', 'wb', 0)\n    f.write(b'x' * 8); f.write(b'x' * 8); "
                  "f.write(b'x')\n"
                  "except OSError as e:\n    n = e.errno\nn"),
            "27");
  // Not SIG_IGN: a program that is started has its defaults.
  EXPECT_EQ(value("import os\nline = [l for l in os.popen('cat /proc/self/status') if "
                  "l.startswith('SigIgn')][0]\n"
                  "int(line.split()[1], 16) & (1 << 12 | 1 << 24)"),
            "0");
  EXPECT_EQ(value("import signal\nsignal.getsignal(signal.SIGINT) is signal.default_int_handler"),
            "true");
}

CallOptions with_provider(const std::string& function) {
  CallOptions options;
  options.globals_provider = "provider_under_test:" + function;
  options.first =
      "import sys, types\nm = types.ModuleType('provider_under_test')\n"
      "exec('''\n"
      "import os\n"
      "def build(ctx):\n"
      "    assert type(ctx) is dict and set(ctx) == {'request_id', 'workspace', 'extra'}\n"
      "    assert os.path.samefile(ctx['workspace'], '.') and ctx['request_id'] == 'call-1'\n"
      "    return {'add': lambda x: x + ctx['extra']['n'], 'extra': ctx['extra']}\n"
      "def raises(ctx): raise SystemExit('no')\n"
      "def pairs(ctx): return [('a', 1)]\n"
      "def nothing(ctx): return None\n"
      "def numbers(ctx): return {1: 2}\n"
      "def mapping(ctx):\n"
      "    import collections\n    return collections.ChainMap({'a': 1})\n"
      "class K:\n    @staticmethod\n    def build(ctx): return {'a': 1}\n"
      "not_callable = 5\n"
      "''', m.__dict__)\nsys.modules[m.__name__] = m\ndel m\n";
  return options;
}

TEST(PythonState, GlobalsProvider) {
  CallOptions options = with_provider("build");
  options.extra_json = "{\"n\": 5}";
  EXPECT_EQ(value("add(1)", options), "6");
  options.extra_json = "";
  EXPECT_EQ(value("extra", options), "{}");
  EXPECT_EQ(value("a", with_provider("mapping")), "1");
  EXPECT_EQ(value("a", with_provider("K.build")), "1");
  for (const char* bad : {"raises", "pairs", "nothing", "numbers", "not_callable", "missing", ""}) {
    const wire::Report report = call("1", with_provider(bad)).report;
    EXPECT_EQ(report.status, Status::kExtension) << bad;
    EXPECT_EQ(report.message.find("globals_provider provider_under_test:"), 0U) << report.message;
  }
  EXPECT_NE(call("1", with_provider("nothing")).report.message.find("NoneType"), std::string::npos);
  EXPECT_NE(call("1", with_provider("raises")).report.message.find("SystemExit: no"),
            std::string::npos);
  CallOptions missing;
  missing.globals_provider = "no_such_module_x:build";
  EXPECT_NE(call("1", missing).report.message.find("No module named 'no_such_module_x'"),
            std::string::npos);
}

}  // namespace
}  // namespace pyplaypen::python
