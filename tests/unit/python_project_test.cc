// project(): a value to JSON text, its refusals and its bounds.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>

#include "runtime/python/project.h"
#include "tests/unit/python_call.h"

namespace pyplaypen::python {
namespace {

using Status = wire::ReportStatus;

// The last expression as Python's own json sees what comes back: "True" when it reads as expected.
std::string reads_back(const std::string& expression, const std::string& setup = "") {
  const std::string json = value(setup + expression);
  return in_child([&]() -> std::string {
    const PyRef names = PyRef::borrow(captured().main_dict.get());
    const PyRef text = PyRef::steal(
        PyUnicode_FromStringAndSize(json.data(), static_cast<Py_ssize_t>(json.size())));
    if (!text) return "no UTF-8: " + json.substr(0, 100);
    PyDict_SetItemString(names.get(), "text", text.get());
    const std::string check = setup +
                              "import json, sys\nsys.set_int_max_str_digits(0)\n"
                              "def same(a, b): return type(a) is type(b) and repr(a) == repr(b)\n"
                              "assert same(json.loads(text), " +
                              expression + "), text[:200]\n";
    return PyRun_SimpleString(check.c_str()) == 0 ? "same" : "different: " + json.substr(0, 200);
  });
}

TEST(PythonProject, PlainTypes) {
  EXPECT_EQ(value("[None, True, False, 0, -1, 2**62, -2**63, 2**63, 'a', '', 1.5]"),
            "[null,true,false,0,-1,4611686018427387904,-9223372036854775808,9223372036854775808,"
            "\"a\",\"\",1.5]");
  EXPECT_EQ(value("import datetime as d, decimal, pathlib\n"
                  "[d.date(2024, 6, 19), d.datetime(2024, 6, 19, 1, 2, 3), d.time(4, 5),"
                  " d.datetime(1, 1, 1, tzinfo=d.timezone.utc), decimal.Decimal('1.10'),"
                  " decimal.Decimal('NaN'), pathlib.Path('a/b'), pathlib.PureWindowsPath('c:/d'),"
                  " (1, 2), {3}, frozenset([4]), {'k': None, 1: True}]"),
            "[\"2024-06-19\",\"2024-06-19T01:02:03\",\"04:05:00\",\"0001-01-01T00:00:00+00:00\","
            "\"1.10\",\"NaN\",\"a/b\",\"c:\\\\d\",[1,2],[3],[4],{\"k\":null,\"1\":true}]");
  EXPECT_EQ(value("{1: 2, 3: 4}"), "{\"1\":2,\"3\":4}");
  EXPECT_EQ(value("{None: 1, True: 2, 1.5: 3, (1, 'a'): 4}"),
            "{\"None\":1,\"True\":2,\"1.5\":3,\"(1, 'a')\":4}");
  EXPECT_EQ(value("[[], {}, (), set()]"), "[[],{},[],[]]");
}

TEST(PythonProject, Subclasses) {
  EXPECT_EQ(
      value("import enum, collections\n"
            "class S(str): pass\nclass I(int): pass\nclass F(float): pass\n"
            "class L(list): pass\nclass D(dict): pass\n"
            "class C(enum.IntEnum): A = 3\nclass T(str, enum.Enum): B = 'b'\n"
            "P = collections.namedtuple('P', 'x y')\n"
            "[S('s'), I(2**70), F(0.1), L([1]), D(a=1), C.A, T.B, P(1, 2),"
            " collections.Counter('aab'), collections.defaultdict(int, z=1)]"),
      "[\"s\",1180591620717411303424,0.1,[1],{\"a\":1},3,\"b\",[1,2],{\"a\":2,\"b\":1},{\"z\":1}]");
  EXPECT_EQ(value("import collections\no = collections.OrderedDict(a=1, b=2, c=3)\n"
                  "o.move_to_end('a')\no"),
            "{\"b\":2,\"c\":3,\"a\":1}");
  EXPECT_EQ(value("import datetime\nclass D(datetime.date):\n"
                  "    def isoformat(self): return 'mine'\nD(2024, 1, 1)"),
            "\"mine\"");
  EXPECT_EQ(value("class I(int):\n    def bit_length(self): return 1\n"
                  "    def __abs__(self): return 0\n    def to_bytes(self, *a): return b''\n"
                  "I(-10**30)"),
            "-1" + std::string(30, '0'));
}

TEST(PythonProject, IntegersOfAnySizeAreExact) {
  for (const char* text : {"10**4299", "10**4300", "-(7**6000)", "2**64", "2**64-1", "-2**64",
                           "10**18", "10**27-1", "(1<<20000)+12345", "3**20000", "-(10**9)**50"}) {
    EXPECT_EQ(reads_back(text), "same") << text;
  }
  for (const char* text : {"10**100000", "7**60000", "-(3**200000)+1", "(1<<123457)-1"}) {
    EXPECT_EQ(reads_back(text), "same") << text;
  }
  EXPECT_EQ(value("import decimal, builtins, sys\ndecimal.getcontext().prec = 3\ni = 10**20000\n"
                  "builtins.__dict__.clear()\nsys.setrecursionlimit(50)\ni"),
            "1" + std::string(20000, '0'));
  // The code's own setting neither matters nor changes.
  EXPECT_EQ(value("import sys\nsys.set_int_max_str_digits(640)\nlen([10**5000]), 10**700"),
            "[1,1" + std::string(700, '0') + "]");
  EXPECT_EQ(value("{10**5000: 1}"), "{\"1" + std::string(5000, '0') + "\":1}");
}

TEST(PythonProject, FloatsAreReprs) {
  EXPECT_EQ(value("[0.0, -0.0, 1.0, 0.1, 1e16, 1e15, 123456789012345680.0, 1e-4, 1e-5, 5e-324,"
                  " 1.7976931348623157e308, -2.5, 1e22, 1e23, 9007199254740993.0, 100.0, 1.5e-7]"),
            "[0.0,-0.0,1.0,0.1,1e+16,1000000000000000.0,1.2345678901234568e+17,0.0001,1e-05,5e-324,"
            "1.7976931348623157e+308,-2.5,1e+22,1e+23,9007199254740992.0,100.0,1.5e-07]");
  const Outcome outcome = call(
      "import random, struct, json\n"
      "random.seed(5)\n"
      "a = [struct.unpack('d', struct.pack('Q', random.getrandbits(64)))[0] for _ in "
      "range(20000)]\n"
      "a += [random.uniform(-1000, 1000) for _ in range(10000)]\n"
      "a += [round(random.uniform(-1000, 1000), 3) for _ in range(5000)]\n"
      "a += [float(random.getrandbits(60)) for _ in range(5000)]\n"
      "a = [x for x in a if x - x == 0]\n"
      "open('expected', 'w').write(json.dumps(a, separators=(',', ':'))) and a");
  ASSERT_EQ(outcome.report.status, Status::kOk) << outcome.report.message;
  ASSERT_EQ(outcome.files.size(), 1U);
  EXPECT_TRUE(outcome.files[0].second == outcome.report.value_json);
}

TEST(PythonProject, TextIsEscapedUtf8) {
  EXPECT_EQ(value("'a\"b\\\\c\\n\\r\\t\\b\\f\\x00\\x1f\\x7f/'"),
            "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0000\\u001f\x7f/\"");
  EXPECT_EQ(value("'é€😀\\u2028'"), "\"é€😀\xe2\x80\xa8\"");
  EXPECT_EQ(reads_back("''.join(map(chr, range(0xd800)))"), "same");
  EXPECT_EQ(reads_back("''.join(map(chr, range(256)))"), "same");
  EXPECT_EQ(reads_back("''.join(map(chr, range(0x10f000, 0x110000)))"), "same");
  EXPECT_EQ(reads_back("[['\"' * n, 'x' * n + '\\n', 'y' * n] for n in range(40)]"), "same");
  EXPECT_EQ(reads_back("'ab\\n' * 5000"), "same");
}

TEST(PythonProject, Refusals) {
  struct Case {
    std::string code;
    std::string message;
  };
  const Case cases[] = {
      {"float('nan')", "NaN"},
      {"[1.0, -float('inf')]", "infinite"},
      {"'\\ud800'", "surrogate"},
      {"{'\\udc00': 1}", "surrogate"},
      {"'€\\ud800'", "surrogate"},
      {"'😀\\udfff'", "surrogate"},
      {"a = []\na.append(a)\na", "cycle"},
      {"a = {}\na['x'] = [a]\na", "cycle"},
      {"a = []\nt = (a,)\na.append(t)\nt", "cycle"},
      {"d = []\nfor _ in range(100000): d = [d]\nd", "deeper"},
      {"{1: 'a', '1': 'b'}", "same string '1'"},
      {"{None: 1, 'None': 2}", "same string 'None'"},
      {"class K:\n    def __init__(self, n): self.n = n\n    def __str__(self): return 'k'\n"
       "{K(1): 1, K(2): 2}",
       "same string 'k'"},
      {"object()", "no JSON form"},
      {"b'x'", "no JSON form"},
      {"1j", "no JSON form"},
      {"lambda: 1", "no JSON form"},
      {"range(3)", "no JSON form"},
      {"[{'a': (1, object())}]", "(at [0]['a'][1])"},
      {"class K:\n    def __str__(self): raise SystemExit(3)\n{K(): 1}", "SystemExit: 3"},
      {"class K:\n    def __str__(self): return 5\n{K(): 1}", "TypeError"},
      {"class D(dict):\n    def items(self): raise KeyboardInterrupt\nD(a=1)", "KeyboardInterrupt"},
      {"class D(dict):\n    def items(self): return [1]\nD(a=1)", "pairs"},
      {"class S(set):\n    def __iter__(self): raise SystemExit\nS([1])", "SystemExit"},
      {"import datetime\nclass D(datetime.date):\n    def isoformat(self): return 5\nD(1, 1, 1)",
       "not a str"},
  };
  for (const Case& test : cases) {
    const Outcome outcome = call(test.code);
    EXPECT_EQ(outcome.report.status, Status::kSerialization) << test.code;
    EXPECT_NE(outcome.report.message.find(test.message), std::string::npos)
        << test.code << ": " << outcome.report.message;
    EXPECT_EQ(outcome.report.value_json, "null");
    EXPECT_FALSE(outcome.report.value_type.empty());
    EXPECT_FALSE(outcome.report.value_repr.empty());
  }
}

TEST(PythonProject, DepthIsCountedInContainers) {
  const auto nested = [](int depth) {
    return "d = 1\nfor _ in range(" + std::to_string(depth) + "): d = [d]\nd";
  };
  EXPECT_EQ(value(nested(50)), std::string(50, '[') + "1" + std::string(50, ']'));
  EXPECT_EQ(call(nested(51)).report.status, Status::kSerialization);
  // The same object twice is no cycle.
  EXPECT_EQ(value("a = [1]\n[a, a, {'a': a}]"), "[[1],[1],{\"a\":[1]}]");
}

TEST(PythonProject, ReprIsBounded) {
  const Outcome outcome = call("class A:\n    def __repr__(self): return 'é' * 10**6\nA()");
  EXPECT_LE(outcome.report.value_repr.size(), 210U);
  EXPECT_EQ(outcome.report.value_type, "A");
  EXPECT_EQ(call("class A:\n    def __repr__(self): raise SystemExit\nA()").report.value_repr,
            "<repr() failed>");
  EXPECT_LE(call("b'\\x00' * 10**8").report.value_repr.size(), 1000U);
  EXPECT_EQ(call("import fractions\nfractions.Fraction(1, 3)").report.value_type,
            "fractions.Fraction");
  EXPECT_EQ(call("a = [1, 2]\na.append(a)\na").report.value_repr, "<list of 3 items>");
}

TEST(PythonProject, LimitIsExactAndEarly) {
  CallOptions options;
  options.limits.return_value_bytes = 10;
  EXPECT_EQ(value("'12345678'", options), "\"12345678\"");
  EXPECT_EQ(call("'123456789'", options).report.status, Status::kReturnLimit);
  EXPECT_EQ(value("[1,2,3,44]", options), "[1,2,3,44]");
  EXPECT_EQ(call("[1,2,3,444]", options).report.status, Status::kReturnLimit);
  EXPECT_EQ(value("1234567890", options), "1234567890");
  EXPECT_EQ(call("12345678901", options).report.status, Status::kReturnLimit);
  EXPECT_EQ(value("1.23456789", options), "1.23456789");
  EXPECT_EQ(call("1.234567891", options).report.status, Status::kReturnLimit);
  EXPECT_EQ(value("10**9", options), "1000000000");
  EXPECT_EQ(call("10**30", options).report.status, Status::kReturnLimit);
  EXPECT_EQ(value("'\\n\\n\\n\\n'", options), "\"\\n\\n\\n\\n\"");
  EXPECT_EQ(call("'\\n\\n\\n\\n\\n'", options).report.status, Status::kReturnLimit);
  EXPECT_EQ(value("'éééé'", options), "\"éééé\"");
  EXPECT_EQ(call("'ééééa'", options).report.status, Status::kReturnLimit);
  EXPECT_EQ(call("{'a': 1, 'b': 2}", options).report.status, Status::kReturnLimit);
  options.limits.return_value_bytes = 0;
  EXPECT_EQ(call("1", options).report.status, Status::kReturnLimit);
  options.limits.return_value_bytes = UINT64_MAX;
  EXPECT_EQ(value("[1, 'a', 2**70]", options), "[1,\"a\",1180591620717411303424]");
}

TEST(PythonProject, HugeValuesAreRefusedWithoutACopy) {
  for (const char* code :
       {"'x' * 50_000_000", "['x'] * 20_000_000", "set(range(2_000_000))", "'é' * 50_000_000",
        "(1,) * 20_000_000", "1 << 40_000_000", "{'a': 'x' * 50_000_000}", "'\\n' * 5_000_000"}) {
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = call("v = " + std::string(code) + "\nv");
    EXPECT_EQ(outcome.report.status, Status::kReturnLimit) << code << outcome.report.message;
    EXPECT_LT(outcome.report.max_rss_bytes, 400U << 20) << code;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3)) << code;
  }
}

TEST(PythonProject, MutationWhileProjecting) {
  EXPECT_EQ(value("class K:\n    def __str__(self):\n        l.clear()\n        return 'k'\n"
                  "l = [{K(): 1}, 2, 3]\nl"),
            "[{\"k\":1}]");
  const Outcome grows = call(
      "class K:\n    def __str__(self):\n"
      "        for i in range(1000): d[i] = i\n        return 'k'\n"
      "d = {}\nd['a'] = {K(): 1}\nd['b'] = 2\nd");
  EXPECT_EQ(grows.report.status, Status::kSerialization);
  EXPECT_NE(grows.report.message.find("changed"), std::string::npos);
  const Outcome clears = call(
      "class K:\n    def __str__(self):\n        d.clear()\n        return 'k'\n"
      "d = {K(): 1, 'b': [2]}\nd");
  EXPECT_EQ(clears.report.status, Status::kSerialization) << clears.report.value_json;
  const Outcome endless = call(
      "class K:\n    def __str__(self):\n"
      "        l.append({K(): 1})\n        return 'k'\n"
      "l = [{K(): 1}]\nl");
  EXPECT_EQ(endless.report.status, Status::kReturnLimit);
}

TEST(PythonProject, MemoryErrorIsTheLimit) {
  const Outcome outcome = call("class K:\n    def __str__(self): raise MemoryError\n{K(): 1}");
  EXPECT_EQ(outcome.report.status, Status::kMemoryLimit);
  CallOptions options;
  options.before = [] {
    const rlimit limit = {256U << 20, 256U << 20};
    ::setrlimit(RLIMIT_AS, &limit);
  };
  options.limits.return_value_bytes = UINT64_MAX;
  EXPECT_EQ(call("['x' * 100_000_000, 'y' * 80]", options).report.status, Status::kMemoryLimit);
}

TEST(PythonProject, Projector) {
  CallOptions options;
  options.first =
      "import sys, types\nm = types.ModuleType('projectors_under_test')\n"
      "exec('''\n"
      "class P:\n    def __init__(self, v): self.v = v\n"
      "def project(value):\n"
      "    if isinstance(value, P): return {'p': value.v}\n"
      "    raise ValueError('no projection for ' + type(value).__name__)\n"
      "def same(value): return value\n"
      "def fresh(value): return P(value)\n"
      "def leave(value): raise SystemExit(3)\n"
      "def eager(value):\n"
      "    return {'seen': type(value).__name__} if type(value) is not float else 'nf'\n"
      "eager.wants = ('subclasses', 'non_finite')\n"
      "def modest(value): return NotImplemented\n"
      "modest.wants = ('subclasses', 'non_finite')\n"
      "''', m.__dict__)\nsys.modules[m.__name__] = m\ndel m\n";
  const std::string import_p = "from projectors_under_test import P\n";
  options.type_projector = "projectors_under_test:project";
  EXPECT_EQ(value(import_p + "[P(P(1)), {'k': P(2)}]", options),
            "[{\"p\":{\"p\":1}},{\"k\":{\"p\":2}}]");
  const Outcome unknown = call("[1, object()]", options);
  EXPECT_EQ(unknown.report.status, Status::kSerialization);
  EXPECT_NE(unknown.report.message.find("no projection for object"), std::string::npos);
  EXPECT_EQ(unknown.report.value_type, "object");
  EXPECT_EQ(call("float('nan')", options).report.status, Status::kSerialization);
  const Outcome cycle = call(import_p + "p = P(1)\np.v = [p]\np", options);
  EXPECT_NE(cycle.report.message.find("cycle"), std::string::npos) << cycle.report.message;
  options.type_projector = "projectors_under_test:same";
  EXPECT_EQ(call("object()", options).report.status, Status::kSerialization);
  options.type_projector = "projectors_under_test:fresh";
  const Outcome endless = call("object()", options);
  EXPECT_EQ(endless.report.status, Status::kSerialization);
  EXPECT_NE(endless.report.message.find("50 times"), std::string::npos) << endless.report.message;
  options.type_projector = "projectors_under_test:leave";
  EXPECT_EQ(call("object()", options).report.status, Status::kSerialization);
  options.type_projector = "projectors_under_test:eager";
  EXPECT_EQ(value("import collections\n"
                  "[1, 1.5, float('nan'), collections.namedtuple('N', 'a')(1), (1,), True]",
                  options),
            "[1,1.5,\"nf\",{\"seen\":\"N\"},[1],true]");
  options.type_projector = "projectors_under_test:modest";
  EXPECT_EQ(value("import collections\n[collections.namedtuple('N', 'a')(1)]", options), "[[1]]");
  EXPECT_EQ(call("float('nan')", options).report.status, Status::kSerialization);
  EXPECT_EQ(call("object()", options).report.status, Status::kSerialization);
}

}  // namespace
}  // namespace pyplaypen::python
