#include "runtime/python/compile.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "runtime/python/py_error.h"

namespace pyplaypen::python {
namespace {

constexpr int kFlags = PyCF_ALLOW_TOP_LEVEL_AWAIT;

PyCompilerFlags compiler_flags(int flags) {
  PyCompilerFlags result = {};
  result.cf_flags = flags;
  result.cf_feature_version = PY_MINOR_VERSION;
  return result;
}

PyRef compile_text(const Captured& captured, const char* text, int start, PyCompilerFlags& flags) {
  return PyRef::steal(Py_CompileStringObject(text, captured.file_name.get(), start, &flags, -1));
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

enum class Kind { kStatement, kPerhapsExpression };

// Saves a parse that would fail: only what surely is no expression is called a statement.
Kind kind_of(std::string_view tail) {
  constexpr std::array<std::string_view, 19> kKeywords = {
      "assert", "async",  "break",  "class", "continue", "def",      "del",
      "for",    "from",   "global", "if",    "import",   "nonlocal", "pass",
      "raise",  "return", "try",    "while", "with"};
  if (tail.starts_with('@')) return Kind::kStatement;
  size_t length = 0;
  while (length < tail.size() && is_word(tail[length])) ++length;
  const std::string_view word = tail.substr(0, length);
  if (std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end()) {
    return Kind::kStatement;
  }
  if (word.empty()) return Kind::kPerhapsExpression;
  // `name = ...` and `name += ...`
  std::string_view rest = tail.substr(length);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  if (!rest.empty() && std::string_view("+-*/%&|^@").find(rest[0]) != std::string_view::npos) {
    rest.remove_prefix(1);
  }
  const bool assigns = rest.size() >= 2 && rest[0] == '=' && rest[1] != '=';
  return assigns ? Kind::kStatement : Kind::kPerhapsExpression;
}

// `a, *b` is an expression as a statement only, not where an expression alone is parsed.
bool may_be_starred(std::string_view tail) {
  for (size_t star = tail.find('*'); star != std::string_view::npos;
       star = tail.find('*', star + 1)) {
    const size_t before =
        star == 0 ? std::string_view::npos : tail.find_last_not_of(" \t\r\n\\", star - 1);
    if (before == std::string_view::npos || tail[before] == ',') return true;
  }
  return false;
}

// A clause of the statement above it.
bool continues_statement(std::string_view line) {
  constexpr std::array<std::string_view, 4> kClauses = {"elif", "else", "except", "finally"};
  size_t length = 0;
  while (length < line.size() && is_word(line[length])) ++length;
  return std::find(kClauses.begin(), kClauses.end(), line.substr(0, length)) != kClauses.end();
}

// Whether a tail that is no expression by itself is one statement without a value, and means what
// it means in the whole.
bool stands_alone(std::string_view whole, std::string_view tail) {
  const bool may_be_several = tail.find(';') != std::string_view::npos;
  const bool belongs_first = tail.find("__future__") != std::string_view::npos;
  // Declares names for all of the module, and is refused after their use.
  const bool may_declare = whole.find("global") != std::string_view::npos;
  return !may_be_several && !belongs_first && !may_declare && !may_be_starred(tail);
}

// A module's annotations are gathered by its code object; two of them would each have their own.
bool annotates(const PyRef& code) {
  PyObject* names = reinterpret_cast<PyCodeObject*>(code.get())->co_names;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    for (const char* name : {"__annotations__", "__annotate__", "__conditional_annotations__"}) {
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), name) == 0) return true;
    }
  }
  return false;
}

// Where the last line begins that has the start of a statement in column 0, by its looks.
size_t last_line_in_column_0(std::string_view source) {
  size_t end = source.size();
  while (true) {
    const size_t newline = end == 0 ? std::string_view::npos : source.rfind('\n', end - 1);
    const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    if (start < source.size() &&
        std::string_view(" \t\r\n#)]}").find(source[start]) == std::string_view::npos &&
        !continues_statement(source.substr(start))) {
      return start;
    }
    if (newline == std::string_view::npos) return std::string_view::npos;
    end = newline;
  }
}

bool has_lone_return(std::string_view text) {
  for (size_t at = text.find('\r'); at != std::string_view::npos; at = text.find('\r', at + 1)) {
    if (at + 1 == text.size() || text[at + 1] != '\n') return true;
  }
  return false;
}

// Fewer pages and time than `text` compiled whole, for the same tokens on the same lines.
std::string keep_lines(std::string_view head, std::string_view tail) {
  std::string text(static_cast<size_t>(std::count(head.begin(), head.end(), '\n')), '\n');
  return text.append(tail);
}

// asyncio.run and its like refuse to run inside a loop.
bool starts_loops(std::string_view text) {
  constexpr std::array<std::string_view, 4> kStarters = {
      "asyncio.run", "asyncio.Runner", "run_until_complete", "run_forever"};
  return std::ranges::any_of(
      kStarters, [&](std::string_view name) { return text.find(name) != std::string_view::npos; });
}

// What the code imported from __future__.
int future_features(const PyRef& code) {
  return code ? reinterpret_cast<PyCodeObject*>(code.get())->co_flags & PyCF_MASK : 0;
}

PyRef compile_tree(const Captured& captured, PyObject* tree, const char* mode, int features) {
  const PyRef arguments = PyRef::steal(Py_BuildValue(
      "(OOsii)", tree, captured.file_name.get(), mode, kFlags | features, 1 /* dont_inherit */));
  return arguments ? PyRef::steal(PyObject_CallObject(captured.compile.get(), arguments.get()))
                   : PyRef();
}

}  // namespace

std::optional<Compiled> compile_by_text(const Captured& captured, const Source& source) {
  const std::string_view text = source.bytes();
  // A form feed resets the column, a lone return ends a line for the tokenizer only.
  if (!source.is_plain() || text.find('\f') != std::string_view::npos ||
      text.find('\0') != std::string_view::npos || has_lone_return(text)) {
    return std::nullopt;
  }
  const size_t cut = last_line_in_column_0(text);
  if (cut == std::string_view::npos) {
    if (text.find_first_not_of(" \t\r\n") != std::string_view::npos) return std::nullopt;
    return Compiled{};
  }
  const std::string_view head = text.substr(0, cut);
  const std::string_view tail = text.substr(cut);
  const Kind kind = kind_of(tail);
  if (kind == Kind::kStatement && !stands_alone(text, tail)) return std::nullopt;

  Compiled result;
  PyCompilerFlags flags = compiler_flags(kFlags);  // gains the head's future features
  if (head.find_first_not_of(" \t\r\n") != std::string_view::npos) {
    result.head = compile_text(captured, std::string(head).c_str(), Py_file_input, flags);
    if (!result.head) return PyErr_Clear(), std::nullopt;
    // Changes what the tokens after it mean, in some versions from the next compilation on only.
    if ((future_features(result.head) & CO_FUTURE_BARRY_AS_BDFL) != 0) return std::nullopt;
  }
  const std::string tail_text = keep_lines(head, tail);
  if (kind == Kind::kPerhapsExpression) {
    PyCompilerFlags tail_flags = flags;
    result.tail = compile_text(captured, tail_text.c_str(), Py_eval_input, tail_flags);
    if (result.tail) {
      result.tail_is_value = true;
      result.value_at = cut;
      return result;
    }
    PyErr_Clear();
    if (!stands_alone(text, tail)) return std::nullopt;
  }
  result.tail = compile_text(captured, tail_text.c_str(), Py_file_input, flags);
  if (!result.tail) return PyErr_Clear(), std::nullopt;
  if (annotates(result.tail)) return std::nullopt;
  return result;
}

std::optional<Compiled> compile_by_tree(const Captured& captured, const Source& source) {
  PyCompilerFlags flags = compiler_flags(kFlags | PyCF_ONLY_AST);
  const PyRef tree = compile_text(captured, source.bytes().c_str(), Py_file_input, flags);
  if (!tree) return std::nullopt;
  const PyRef body = PyRef::steal(PyObject_GetAttr(tree.get(), captured.names.body.get()));
  if (!body || !PyList_Check(body.get())) return std::nullopt;

  Compiled result;
  const Py_ssize_t count = PyList_GET_SIZE(body.get());
  if (count == 0) return result;
  PyObject* last = PyList_GET_ITEM(body.get(), count - 1);
  if (reinterpret_cast<PyObject*>(Py_TYPE(last)) == captured.ast_expr.get()) {
    const PyRef value = PyRef::steal(PyObject_GetAttr(last, captured.names.value.get()));
    if (!value) return std::nullopt;
    const PyRef expression = PyRef::steal(
        PyObject_CallFunctionObjArgs(captured.ast_expression.get(), value.get(), nullptr));
    if (!expression || PyList_SetSlice(body.get(), count - 1, count, nullptr) != 0) {
      return std::nullopt;
    }
    result.tail_is_value = true;
    if (count > 1) {
      result.head = compile_tree(captured, tree.get(), "exec", 0);
      if (!result.head) return std::nullopt;
    }
    result.tail = compile_tree(captured, expression.get(), "eval", future_features(result.head));
    if (!result.tail) return std::nullopt;
    return result;
  }
  result.head = compile_tree(captured, tree.get(), "exec", 0);
  if (!result.head) return std::nullopt;
  return result;
}

std::optional<Compiled> compile_source(const Captured& captured, const Source& source) {
  const size_t nul = source.bytes().find('\0');
  if (nul != std::string::npos) {
    source.refuse("the source contains a NUL byte", nul);
    return std::nullopt;
  }
  std::optional<Compiled> compiled = compile_by_text(captured, source);
  if (!compiled) compiled = compile_by_tree(captured, source);
  if (compiled && awaits(compiled->tail)) compiled->head_starts_loops = starts_loops(source.bytes());
  return compiled;
}

bool awaits(const PyRef& code) {
  return code && (reinterpret_cast<PyCodeObject*>(code.get())->co_flags & CO_COROUTINE) != 0;
}

}  // namespace pyplaypen::python
