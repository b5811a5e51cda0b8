// The projectors that are shipped: share/python/pyplaypen/projectors.py.
#include <gtest/gtest.h>

#include "tests/unit/python_call.h"

namespace pyplaypen::python {
namespace {

using Status = wire::ReportStatus;

CallOptions with(const std::string& projector) {
  CallOptions options;
  options.type_projector = "pyplaypen.projectors:" + projector;
  return options;
}

std::string numpy_pandas(const std::string& expression) {
  return value("import numpy as np, pandas as pd\n" + expression, with("numpy_pandas"));
}

std::string rich(const std::string& code) { return value(code, with("rich")); }

TEST(PythonProjectors, NumpyScalars) {
  EXPECT_EQ(
      numpy_pandas(
          "[np.int64(3), np.uint8(255), np.bool_(True), np.float32(0.5), np.float64(0.1),"
          " np.str_('s'), np.float16(1), np.longdouble(2), np.int64(-2**63), np.bytes_(b'b')]"),
      "[3,255,true,0.5,0.1,\"s\",1.0,2.0,-9223372036854775808,\"b\"]");
  EXPECT_EQ(numpy_pandas("[np.datetime64('2024-02-03'), np.datetime64('2024-02-03T04:05:06.5'),"
                         " np.datetime64('NaT'), np.timedelta64(90, 's'), np.timedelta64(1, 'D'),"
                         " np.timedelta64('NaT'), np.timedelta64(2, 'Y')]"),
            "[\"2024-02-03\",\"2024-02-03T04:05:06.500\",null,90.0,86400.0,null,2]");
  EXPECT_EQ(numpy_pandas("np.zeros(1, dtype=[('a', 'i4'), ('b', 'f8', (2,))])[0]"),
            "{\"a\":0,\"b\":[0.0,0.0]}");
}

TEST(PythonProjectors, NumpyArrays) {
  EXPECT_EQ(numpy_pandas(
                "[np.arange(3), np.zeros((2, 1, 2)), np.array(5), np.array([]), np.array([['a']]),"
                " np.array([True]), np.matrix([[1, 2]]), np.array([b'x', b'yz'])]"),
            "[[0,1,2],[[[0.0,0.0]],[[0.0,0.0]]],5,[],[[\"a\"]],[true],[[1,2]],[\"x\",\"yz\"]]");
  EXPECT_EQ(numpy_pandas("np.array([['2024-01-01', 'NaT']], dtype='M8[D]')"),
            "[[\"2024-01-01\",null]]");
  EXPECT_EQ(numpy_pandas("np.array([1500, 'NaT'], dtype='m8[ms]')"), "[1.5,null]");
  EXPECT_EQ(numpy_pandas("[np.ma.array([1, 2], mask=[0, 1]), np.ma.masked,"
                         " np.ma.array([1.5, 2.5], mask=[1, 0])]"),
            "[[1,null],null,[null,2.5]]");
  EXPECT_EQ(numpy_pandas("np.array([(1, 'x')], dtype=[('a', 'i4'), ('b', 'U1')])"),
            "[{\"a\":1,\"b\":\"x\"}]");
  EXPECT_EQ(numpy_pandas("np.array([1, 'a', None, [2]], dtype=object)"), "[1,\"a\",null,[2]]");
  EXPECT_EQ(
      numpy_pandas("{'a': np.int64(3), 'b': np.arange(3), 'f': pd.DataFrame({'x': [1, 2]})}"),
      "{\"a\":3,\"b\":[0,1,2],\"f\":{\"columns\":[\"x\"],\"rows\":[[1],[2]],\"row_count\":2}}");
}

TEST(PythonProjectors, Refused) {
  for (const char* code : {"np.array([1.0, np.nan])", "np.float64('inf')", "np.array([1j])",
                           "object()", "b'x'", "1j", "np.zeros(2, dtype='V3')"}) {
    const wire::Report report =
        call("import numpy as np\n" + std::string(code), with("numpy_pandas")).report;
    EXPECT_EQ(report.status, Status::kSerialization) << code << report.value_json;
  }
  const wire::Report unknown = call("object()", with("numpy_pandas")).report;
  EXPECT_NE(unknown.message.find("no projection for object"), std::string::npos) << unknown.message;
}

TEST(PythonProjectors, Pandas) {
  EXPECT_EQ(
      numpy_pandas("pd.DataFrame({'a': [1, 2], 'b': ['x', None], 'c': [0.5, np.nan],"
                   " 'd': pd.to_datetime(['2024-01-01', None])})"),
      "{\"columns\":[\"a\",\"b\",\"c\",\"d\"],\"rows\":[[1,\"x\",0.5,\"2024-01-01T00:00:00\"],"
      "[2,null,null,null]],\"row_count\":2}");
  EXPECT_EQ(numpy_pandas("[pd.Series([1, 2]), pd.Series([1.5, np.nan]), pd.Index(['a']),"
                         " pd.Categorical(['a', None]), pd.array([1, None], dtype='Int64'),"
                         " pd.RangeIndex(2), pd.MultiIndex.from_tuples([(1, 'a')])]"),
            "[[1,2],[1.5,null],[\"a\"],[\"a\",null],[1,null],[0,1],[[1,\"a\"]]]");
  EXPECT_EQ(numpy_pandas(
                "[pd.Timestamp('2024-01-01 01:02:03'), pd.NaT, pd.NA, pd.Timedelta('90s'),"
                " pd.Period('2024-01'), pd.Interval(0, 1), pd.Timestamp('2024-01-01', tz='UTC')]"),
            "[\"2024-01-01T01:02:03\",null,null,90.0,\"2024-01\",\"(0, "
            "1]\",\"2024-01-01T00:00:00+00:00\"]");
  EXPECT_EQ(
      numpy_pandas(
          "pd.DataFrame({'t': pd.to_timedelta(['1s', None]), 'o': [[1], {'k': np.int8(2)}]})"),
      "{\"columns\":[\"t\",\"o\"],\"rows\":[[1.0,[1]],[null,{\"k\":2}]],\"row_count\":2}");
  EXPECT_EQ(numpy_pandas("[pd.DataFrame(), pd.DataFrame(index=[1, 2]),"
                         " pd.DataFrame([[1, 2]], columns=['a', 'a'])]"),
            "[{\"columns\":[],\"rows\":[],\"row_count\":0},"
            "{\"columns\":[],\"rows\":[[],[]],\"row_count\":2},"
            "{\"columns\":[\"a\",\"a\"],\"rows\":[[1,2]],\"row_count\":1}]");
  EXPECT_EQ(
      numpy_pandas("pd.DataFrame({'k': ['a', 'b', 'a'], 'v': [1, 2, 3]}).groupby('k')['v'].sum()"),
      "[4,2]");
}

TEST(PythonProjectors, NothingIsImported) {
  for (const char* projector : {"numpy_pandas", "rich"}) {
    EXPECT_EQ(
        value(
            "import sys, collections\nP = collections.namedtuple('P', 'x')\n"
            "P(['numpy' in sys.modules, 'pandas' in sys.modules, 'matplotlib' in sys.modules])[0]",
            with(projector)),
        "[false,false,false]");
    const Outcome outcome = call(
        "import atexit, sys, enum\n"
        "atexit.register(lambda: print('numpy' in sys.modules))\n"
        "class E(enum.IntEnum): A = 1\nE.A",
        with(projector));
    EXPECT_EQ(outcome.report.value_json, "1");
    EXPECT_EQ(outcome.out, "False\n");
  }
  // A NaN stays what it is without `rich`.
  EXPECT_EQ(call("float('nan')", with("numpy_pandas")).report.status, Status::kSerialization);
}

TEST(PythonProjectors, Rich) {
  EXPECT_EQ(
      rich("import dataclasses as d, enum, uuid, collections, datetime\n"
           "@d.dataclass\nclass D:\n    a: int\n    b: list = d.field(default_factory=list)\n"
           "class E(enum.Enum): A = 'x'\nclass F(str, enum.Enum): B = 'y'\n"
           "P = collections.namedtuple('P', 'x y')\n"
           "[D(1, [D(2)]), E.A, F.B, uuid.UUID(int=1), b'hi', bytearray(b'hi'), memoryview(b'hi'),"
           " 1 + 2j, P(1, [P(2, 3)]), (1, 2), datetime.timedelta(hours=1)]"),
      "[{\"a\":1,\"b\":[{\"a\":2,\"b\":[]}]},\"x\",\"y\",\"00000000-0000-0000-0000-000000000001\","
      "\"aGk=\",\"aGk=\",\"aGk=\",{\"real\":1.0,\"imag\":2.0},"
      "{\"x\":1,\"y\":[{\"x\":2,\"y\":3}]},[1,2],3600.0]");
  EXPECT_EQ(rich("inf = float('inf')\n[1.5, inf, -inf, inf - inf]"),
            "[1.5,{\"$float\":\"Infinity\"},{\"$float\":\"-Infinity\"},{\"$float\":\"NaN\"}]");
  EXPECT_EQ(
      rich("import numpy as np\n[np.array([1.0, np.nan]), np.array([1j]), np.float64('nan')]"),
      "[[1.0,{\"$float\":\"NaN\"}],[{\"real\":0.0,\"imag\":1.0}],{\"$float\":\"NaN\"}]");
  EXPECT_EQ(rich("import pandas as pd\npd.DataFrame({'a': [1.5, None]})"),
            "{\"columns\":[\"a\"],\"rows\":[[1.5],[null]],\"row_count\":2}");
  EXPECT_EQ(call("object()", with("rich")).report.status, Status::kSerialization);
  EXPECT_EQ(call("import enum\nclass E(enum.Enum): A = object()\nE.A", with("rich")).report.status,
            Status::kSerialization);
}

TEST(PythonProjectors, FiguresBecomeArtifacts) {
  const Outcome outcome = call(
      "import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\n"
      "open('figure-1.png', 'w').write('mine')\n"
      "f, axes = plt.subplots()\naxes.plot([1, 2])\n[f, axes, plt.figure()]",
      with("rich"));
  EXPECT_EQ(outcome.report.value_json, "[\"figure-2.png\",\"figure-2.png\",\"figure-3.png\"]")
      << outcome.report.message;
  ASSERT_EQ(outcome.files.size(), 3U);
  for (const auto& [name, content] : outcome.files) {
    EXPECT_EQ(content.substr(0, 4), name == "figure-1.png" ? "mine" : "\x89PNG") << name;
  }
}

}  // namespace
}  // namespace pyplaypen::python
