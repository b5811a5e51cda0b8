// compile_by_text() held against compile_by_tree(): the same code objects, or no answer.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "runtime/python/compile.h"
#include "runtime/python/py_error.h"
#include "tests/unit/python_call.h"

namespace pyplaypen::python {
namespace {

std::string bytes_of(const PyRef& code) {
  if (!code) return "none";
  const PyRef bytes = PyRef::steal(
      PyObject_CallMethod(PyImport_AddModule("marshal"), "dumps", "Oi", code.get(), 2));
  if (!bytes) return PyErr_Clear(), "cannot be marshalled";
  return std::string(PyBytes_AS_STRING(bytes.get()),
                     static_cast<size_t>(PyBytes_GET_SIZE(bytes.get())));
}

// Compiled from comments only.
bool is_empty(const PyRef& code) {
  const PyRef bytes = PyRef::steal(PyObject_GetAttrString(code.get(), "co_code"));
  const PyRef nothing = PyRef::steal(Py_CompileString("# nothing", "x", Py_file_input));
  const PyRef expected = PyRef::steal(PyObject_GetAttrString(nothing.get(), "co_code"));
  return PyObject_RichCompareBool(bytes.get(), expected.get(), Py_EQ) == 1;
}

void quiet() { PyRun_SimpleString("import warnings; warnings.simplefilter('ignore')"); }

struct Verdict {
  int accepted = 0;
  int left_to_tree = 0;
};

// Empty: they agree.
std::string disagreement(const std::string& text, Verdict& verdict) {
  const Source source(text);
  const std::optional<Compiled> quick = compile_by_text(captured(), source);
  if (PyErr_Occurred() != nullptr) return "an exception was left behind";
  if (!quick) {
    ++verdict.left_to_tree;
    return {};
  }
  ++verdict.accepted;
  const std::optional<Compiled> tree = compile_by_tree(captured(), source);
  if (!tree) {
    const PyRef error = take_exception();
    const PyRef shown = PyRef::steal(PyObject_Repr(error.get()));
    return std::string("by text it compiles, by tree not: ") + PyUnicode_AsUTF8(shown.get());
  }
  if (quick->tail_is_value != tree->tail_is_value) return "another idea of what the value is";
  if (quick->tail_is_value) {
    if (bytes_of(quick->tail) != bytes_of(tree->tail)) return "another tail";
    const bool is_nothing = quick->head && !tree->head && is_empty(quick->head);
    if (!is_nothing && bytes_of(quick->head) != bytes_of(tree->head)) return "another head";
  }
  return {};
}

TEST(PythonCompile, ByTextAgreesWithByTree) {
  const char* sources[] = {
      "x = 1\nglobal x",
      "global x\nx: int = 1",
      "x\nif 1:\n  global x\n",
      "a: int\nb: int = 2",
      "def f():\n  global x\n  x = 1\nf()",
      "global x\nx",
      "global x\n(x := 1)",
      "",
      "\n",
      "# c",
      "1",
      "1\n",
      "1 # c\n",
      "x",
      "x = 1",
      "x = 1\n",
      "x == 1",
      "x += 1",
      "x: int = 1",
      "x: int",
      "1;",
      "1; 2",
      "x = 1; x",
      "x = 1;",
      "a = b = 3",
      "*a, b = 1, 2",
      "a, *b",
      "*a,",
      "(*a, b)",
      "a\n",
      "a = [\n1,\n2]\n",
      "[\n1,\n2]\n",
      "f(\n1,\n2\n)\n",
      "f(\n'''\nabc\n''')",
      "'''\nabc\n'''",
      "x = '''\nabc\n'''\n",
      "x = '''\n1\n'''",
      "x = '''\n1\n'''\n1",
      "'''a\n1",
      "(\n1",
      "(\n1\n",
      "x = (\n1\n",
      "if 1:\n  2\nelse:\n  3\n",
      "if 1:\n  2\nelse:\n  3\n4\n",
      "if 1: 2",
      "if 1:\n  2\n",
      "if 1:\n",
      "if 1:\n2",
      "try:\n  1\nexcept E:\n  2\nfinally:\n  3\n",
      "try:\n  1\nexcept E:\n  2\n5",
      "for x in y: x\n",
      "while 1:\n  break\nelse:\n  2\n",
      "with a: b",
      "@d\ndef f(): pass",
      "@d\ndef f(): pass\nf",
      "@d\n1",
      "def f():\n  return 1\nf()\n",
      "def f():\n  x\n\n\n\nf()\n\n\n# end\n",
      "class A: pass\nA",
      "lambda: 1",
      "import a",
      "import a; a",
      "from a import *",
      "from a import (\nb,\nc\n)",
      "from a import (\nb,\nc\n)\nb",
      "from __future__ import annotations",
      "from __future__ import annotations\nx: y = 1\nx",
      "from __future__ import annotations; x",
      "'''d'''\nfrom __future__ import annotations\n",
      "'''d'''\nfrom __future__ import annotations\nx",
      "x\nfrom __future__ import annotations",
      "from __future__ import barry_as_FLUFL\n1 <> 2",
      "from __future__ import barry_as_FLUFL\n1 != 2",
      "1 <> 2",
      "x \\\n+ 1",
      "x \\\n",
      "x = 1 + \\\n2",
      "\\\nx",
      "x = 1 \\\n\ny",
      " \\\nx",
      "x\\\n=1",
      " x",
      " x\ny",
      "\tx",
      "x\n y",
      "x\n  + y",
      "\fx",
      "x = 1\n\fy",
      "x = 1\n\fy = 2",
      "\f\nx",
      "x\r\ny\r\n",
      "x\ry\r",
      "x\r",
      "x = 1\r\nx",
      "x = 'a\rb'",
      "# coding: latin-1\nx",
      "x = 1 # coding: latin-1\nx",
      "\n# coding: latin-1\nx",
      "a\n# coding: latin-1\nx",
      "\xef\xbb\xbfx",
      "'\xff'",
      "# \xff\nx",
      "x\n# \xff",
      "é = 1\né",
      "é",
      "await x",
      "await x\ny",
      "x = await y",
      "x = await y\nx",
      "async def f(): await x\nf()",
      "async with a: b",
      "async for x in y: z",
      "[x async for x in y]",
      "yield x",
      "yield",
      "x = yield",
      "return",
      "return 1",
      "break",
      "pass",
      "pass\nx",
      "del x",
      "global x",
      "global x\nx",
      "nonlocal x",
      "assert x",
      "raise",
      "match x:\n  case 1: 2\n",
      "match x:\n  case 1: 2\nmatch",
      "match",
      "match(x)",
      "match = 1",
      "type = 1",
      "type X = int",
      "print",
      "print 1",
      "exec 'x'",
      "x if y else z",
      "not x",
      "x := 1",
      "(x := 1)",
      "f(x := 1)",
      "f(a=1)",
      "f(*a)",
      "f(a, *b)",
      "x = f(a, *b)",
      "x = a * b",
      "x = a ** b",
      "x -=-1",
      "x-=1",
      "x =- 1",
      "x @ y",
      "x @= y",
      "x //= 2",
      "x <<= 2",
      "x >= 2",
      "x <= 2",
      "x != 2",
      "x<y",
      "x[1] = 2",
      "x.y = 2",
      "x[1]",
      "x.y",
      "()",
      "[]",
      "{}",
      "{1: 2}",
      "{*a}",
      "...",
      "None",
      "True",
      "`x`",
      "$",
      "x)",
      ")",
      "]\nx",
      "x\n)",
      "(x\n)",
      "(x\n)\n",
      "x = (\n1\n)\n",
      "x = [\n]\n[x\n]",
      "f'{x\n}'",
      "f'''{\nx}'''",
      "f'''{\nx\n}'''",
      "f'''\n{x}\n'''\nx",
      "r'\\\n'",
      "'a' \\\n'b'",
      "'a\\\nb'",
      "'a\\\nb'\nc",
      "x = 'a\\\nb'",
      "x = '\\\n'\n1",
      "\"\"\"a\"\"\"; x",
      "x; \"\"\"\ny\n\"\"\"",
      "# a\n# b",
      "x # ; y",
      "x = 1 # ; y",
      "x = ';'",
      "x = 1\n\n\n    \n  # c\n",
      "x\n\n    \n  # c\n",
      "if x:\n  y\n# c\nz",
      "if x:\n  y\n# c\n  z\n",
      "if x:\n  y\n# c\nelse:\n  z\n",
      "elif",
      "else: 1",
      "x = 1\nelse: 2",
      "except",
      "try: 1\nexcept: 2",
      "elsewhere",
      "elsewhere = 1",
      "iffy",
      "format(1)",
      "import_ = 1\nimport_",
      "0if 1else 2",
      "1if 1else 2",
      "classy\n",
      "x = '''\nelse\n'''",
      "x = '''\nelse: \n'''\n",
      "'''\nelse\n'''",
      "'''\n\n)\n'''",
      "(\n)\n",
      "x = \"\"\"\nimport os\n\"\"\"",
      "\"\"\"\nimport os\n\"\"\"",
      "\"\"\"\nx = 1\n\"\"\"",
      "f(\"\"\"\nx = 1\n\"\"\")",
      "f(\"\"\"\ny\n\"\"\")\n",
      "f(\"\"\"\ny\n\"\"\"\n)\n",
      "if 1:\n  x = \"\"\"\ny\n\"\"\"\n",
      "if 1:\n  (\ny)\n",
      "if 1:\n  (\ny\n)\n",
      "def f():\n  return '''\nx'''\n",
      "x = 1\\",
      "\\",
      "x = {\n'a': 1,\n'b': 2\n}",
      "{\n'a': 1,\n'b': 2\n}",
      "x = {\n'a': 1,\n'b': 2}",
      "x = [\na\nfor a in b]",
      "x = (\nyield\n)",
      "print(1)\n;",
      "1\n;2",
      ";",
      "if x: y; z",
      "with a: b; c",
      "x = y; z = w",
      "x: int; y",
      "nonlocal_ = 2",
      "not_x",
      "lambda x: x\nlambda: (\n1)",
      "x = lambda: (\n1)",
      "x\n\n\"\"\"\ntext\n\"\"\"",
      "x = 1\n'''\ntext\n'''\n",
      "__debug__",
      "__debug__ = 1",
      "None = 1",
      "f() = 1",
      "f() += 1",
      "x = 1 if y",
      "a b",
      "a = b c",
      "0777",
      "1_000",
      "1__0",
      "0x",
      "'unterminated",
      "'''unterminated",
      "x = '''unterminated",
      "{",
      "(",
      "x = (",
      "assert (x, 'y')",
      "x is 1",
      "x = x is 1",
      "'\\d'",
      "x = '\\d'\nx",
  };
  EXPECT_EQ(in_child([&] {
              quiet();
              Verdict verdict;
              std::string wrong;
              for (const std::string source : sources) {
                for (const std::string& text :
                     {source, "y = 1\n" + source, "def f():\n    return 1\n\n" + source + "\n",
                      source + "\nx", source + "\nx = 1", "'''\n" + source + "\n'''",
                      "(\n" + source + "\n)"}) {
                  const std::string difference = disagreement(text, verdict);
                  if (!difference.empty()) wrong += text + "\n-- " + difference + "\n\n";
                }
              }
              if (verdict.accepted < 500 || verdict.left_to_tree < 200) wrong += "one-sided";
              return wrong;
            }),
            "");
}

// Real programs, and their beginnings cut anywhere.
TEST(PythonCompile, ByTextAgreesWithByTreeOnTheStandardLibrary) {
  const PyRef os = PyRef::steal(PyImport_ImportModule("os"));
  const PyRef file = PyRef::steal(PyObject_GetAttrString(os.get(), "__file__"));
  const std::filesystem::path directory =
      std::filesystem::path(PyUnicode_AsUTF8(file.get())).parent_path();
  EXPECT_EQ(in_child([&] {
              quiet();
              Verdict verdict;
              std::string wrong;
              int files = 0;
              uint32_t random = 12345;
              for (const auto& entry : std::filesystem::directory_iterator(directory)) {
                if (entry.path().extension() != ".py" || entry.file_size() > 60000) continue;
                ++files;
                std::ifstream stream(entry.path(), std::ios::binary);
                std::stringstream text;
                text << stream.rdbuf();
                const std::string whole = text.str();
                const auto check = [&](const std::string& source) {
                  const std::string difference = disagreement(source, verdict);
                  if (difference.empty()) return;
                  wrong += entry.path().string() + ", " + std::to_string(source.size()) +
                           " bytes: " + difference + "\n";
                };
                check(whole);
                for (int i = 0; i < 6 && !whole.empty(); ++i) {
                  random = random * 1664525 + 1013904223;
                  size_t cut = (random >> 4) % whole.size();
                  if (i % 2 == 0) cut = whole.find('\n', cut);
                  check(whole.substr(0, cut));
                  check(whole.substr(0, cut) + "\nx");
                }
              }
              if (files < 50 || verdict.accepted < files * 2) wrong += "too few were compared";
              return wrong;
            }),
            "");
}

// Programs end the same way whether cut or not, also where they end in a statement.
TEST(PythonCompile, StatementsAtTheEndRunOnce) {
  EXPECT_EQ(call("print(1)\nx = print(2)").out, "1\n2\n");
  EXPECT_EQ(call("print(1)\nif 1: print(2)").out, "1\n2\n");
  EXPECT_EQ(call("'doc'\nx = 1\nprint(__doc__)\n").out, "doc\n");
  EXPECT_EQ(call("'doc'\nprint(__doc__)\nx = 1").out, "doc\n");
  EXPECT_EQ(call("'doc'\nx: int = 1\nprint(__annotations__)").out, "{'x': <class 'int'>}\n");
}

TEST(PythonCompile, LineNumbersHold) {
  EXPECT_EQ(call("x = 1\n\n\ndef f():\n    1/0\n\n\nf()").report.line, 5);
  EXPECT_EQ(call("x = 1\n\n\n1/0").report.line, 4);
  EXPECT_EQ(call("x = 1\n\n\ny = 1/0").report.line, 4);
}

TEST(PythonCompile, WarningsAreToldOnce) {
  EXPECT_EQ(call("x = 1\nx is 1\n").err.find("SyntaxWarning"),
            call("x = 1\nx is 1\n").err.rfind("SyntaxWarning"));
}

TEST(PythonCompile, DISABLED_Speed) {
  const std::pair<const char*, std::string> sources[] = {
      {"1+1", "1+1"},
      {"small",
       "words = 'a b c'.split()\ncounts = {}\nfor w in words:\n    counts[w] = 1\n"
       "sorted(counts.items())\n"},
      {"class",
       [] {
         std::string text;
         for (int i = 0; i < 10; ++i) {
           text +=
               "class A" + std::to_string(i) +
               ":\n    def f(self, x, y=1):\n"
               "        return [x + y for x in range(y) if x % 2] + [{'a': x, 'b': (y, 1)}]\n\n";
         }
         return text + "A0().f(1)\n";
       }()},
      {"statement", "x = [i for i in range(10)]\ny = {'a': 1}\nz = sum(x)\n"},
  };
  for (const auto& [name, text] : sources) {
    double times[2];
    for (int way = 0; way < 2; ++way) {
      double best = 1e9;
      for (int round = 0; round < 20; ++round) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < 100; ++i) {
          const Source source(text);
          const auto result =
              way == 0 ? compile_by_text(captured(), source) : compile_by_tree(captured(), source);
          if (!result) std::abort();
        }
        const std::chrono::duration<double, std::micro> time =
            std::chrono::steady_clock::now() - start;
        best = std::min(best, time.count() / 100);
      }
      times[way] = best;
    }
    std::cout << name << ": by text " << times[0] << " us, by tree " << times[1] << " us\n";
  }
}

}  // namespace
}  // namespace pyplaypen::python
