#include "runtime/python/describe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/python/py_error.h"
#include "runtime/python/text.h"
#include "runtime/sys/error.h"
#include "runtime/sys/unique_fd.h"

namespace pyplaypen::python {
namespace {

constexpr size_t kMaxFrames = 20;   // of all exceptions together
constexpr size_t kMaxChain = 5;     // causes and contexts, the exception itself included
constexpr size_t kMaxMembers = 10;  // of an exception group
constexpr int kMaxGroupDepth = 3;
constexpr size_t kMaxMessage = 8000;  // bytes, of one exception
constexpr size_t kMaxTraceback = 64000;
constexpr size_t kMaxSourceLine = 300;
constexpr size_t kMaxName = 300;  // of a file or a function
constexpr size_t kMaxNotes = 10;
constexpr size_t kMaxFileRead = size_t{4} << 20;

struct Frame {
  PyTracebackObject* entry = nullptr;
  size_t number = 0;
};

PyRef code_of(PyTracebackObject* entry) {
  return PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(entry->tb_frame)));
}

PyCodeObject* as_code(const PyRef& code) { return reinterpret_cast<PyCodeObject*>(code.get()); }

int line_of(PyTracebackObject* entry, PyCodeObject* code) {
  // -1 since CPython 3.12: not computed yet.
  return entry->tb_lineno >= 0 ? entry->tb_lineno : PyCode_Addr2Line(code, entry->tb_lasti);
}

std::string_view stripped(std::string_view line) {
  const size_t start = line.find_first_not_of(" \t\f");
  if (start == std::string_view::npos) return {};
  const size_t end = line.find_last_not_of(" \t\f\r\n");
  return line.substr(start, std::min(end - start + 1, kMaxSourceLine));
}

// A line of a regular file; empty when there is none. Reads no more than kMaxFileRead.
std::string line_of_file(const std::string& path, int number) {
  if (!path.starts_with('/')) return {};
  const sys::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::array<char, 16384> block;
  std::string line;
  int at = 1;
  for (size_t total = 0; total < kMaxFileRead; total += block.size()) {
    const ssize_t got =
        sys::retry_eintr([&] { return ::read(file.get(), block.data(), block.size()); });
    if (got <= 0) break;
    for (std::string_view rest(block.data(), static_cast<size_t>(got)); !rest.empty();) {
      const size_t end = rest.find('\n');
      if (at == number) {
        line.append(rest.substr(0, std::min(end, kMaxSourceLine * 2)));
        if (end != std::string_view::npos || line.size() > kMaxSourceLine * 2) return line;
      }
      if (end == std::string_view::npos) break;
      ++at;
      rest.remove_prefix(end + 1);
    }
  }
  return line;
}

class Description {
 public:
  Description(const Captured& captured, const Source& source)
      : captured_(captured), source_(source) {}

  std::string traceback(PyObject* exception) {
    with_causes(exception);
    if (text_.size() > kMaxTraceback) {
      text_.resize(kMaxTraceback);
      // Never half a character.
      while (!text_.empty() && (static_cast<unsigned char>(text_.back()) & 0xC0) == 0x80) {
        text_.pop_back();
      }
      if (!text_.empty() && (static_cast<unsigned char>(text_.back()) & 0x80) != 0)
        text_.pop_back();
      text_ += "\n...\n";
    }
    return std::move(text_);
  }

  // The line of the deepest frame of the user's source; 0: none.
  int user_line(PyObject* exception) const;

 private:
  bool is_user(PyCodeObject* code) const {
    return code->co_filename == captured_.file_name.get() ||
           PyUnicode_Compare(code->co_filename, captured_.file_name.get()) == 0;
  }
  bool is_full() const { return text_.size() > kMaxTraceback; }

  void with_causes(PyObject* exception);
  void one(PyObject* exception, size_t most_frames);
  void frames(PyObject* exception, size_t most, const std::string& indent);
  void frame(const Frame& frame, const std::string& indent);
  void place_of_syntax_error(PyObject* exception);
  void notes(PyObject* exception);
  void members(PyObject* group, int depth, const std::string& indent);

  const Captured& captured_;
  const Source& source_;
  std::string text_;
  size_t frames_left_ = kMaxFrames;
};

int Description::user_line(PyObject* exception) const {
  const PyRef traceback = PyRef::steal(PyException_GetTraceback(exception));
  PyTracebackObject* deepest = nullptr;
  for (auto* entry = reinterpret_cast<PyTracebackObject*>(traceback.get()); entry != nullptr;
       entry = entry->tb_next) {
    if (is_user(as_code(code_of(entry)))) deepest = entry;
  }
  return deepest == nullptr ? 0 : line_of(deepest, as_code(code_of(deepest)));
}

void Description::frame(const Frame& frame, const std::string& indent) {
  const PyRef code = code_of(frame.entry);
  const int line = line_of(frame.entry, as_code(code));
  const std::string file = bounded_utf8(as_code(code)->co_filename, kMaxName);
  text_ += indent + "  File \"" + file + "\", line " + std::to_string(line) + ", in " +
           bounded_utf8(as_code(code)->co_name, kMaxName) + "\n";
  const std::string from_file = is_user(as_code(code)) ? std::string() : line_of_file(file, line);
  const std::string_view shown =
      stripped(is_user(as_code(code)) ? source_.line(line) : std::string_view(from_file));
  if (!shown.empty()) text_.append(indent).append("    ").append(shown).append("\n");
}

void Description::frames(PyObject* exception, size_t most, const std::string& indent) {
  const PyRef traceback = PyRef::steal(PyException_GetTraceback(exception));
  auto* first = reinterpret_cast<PyTracebackObject*>(traceback.get());
  size_t count = 0;
  size_t skipped = 0;
  bool seen_user = false;
  for (auto* entry = first; entry != nullptr; entry = entry->tb_next, ++count) {
    if (seen_user || !is_user(as_code(code_of(entry)))) continue;
    seen_user = true;
    skipped = count;
    first = entry;
  }
  count -= skipped;
  most = std::min({most, count, frames_left_});
  frames_left_ -= most;
  if (most == 0) return;
  const size_t head = (most + 1) / 2;
  const size_t omitted = count - most;
  size_t number = 0;
  for (auto* entry = first; entry != nullptr; entry = entry->tb_next, ++number) {
    if (number == head && omitted > 0) {
      text_ += indent + "  ... " + std::to_string(omitted) +
               (omitted == 1 ? " frame omitted\n" : " frames omitted\n");
    }
    if (number < head || number >= head + omitted) frame({entry, number}, indent);
  }
}

void Description::place_of_syntax_error(PyObject* exception) {
  const auto text_attribute = [&](const char* name) {
    PyRef value = PyRef::steal(PyObject_GetAttrString(exception, name));
    if (!value) PyErr_Clear();
    return value;
  };
  const auto number = [&](const char* name) {
    const PyRef value = text_attribute(name);
    if (!value || !PyLong_Check(value.get())) return long{0};
    const long result = PyLong_AsLong(value.get());
    if (result == -1) PyErr_Clear();
    return result;
  };
  const long line = number("lineno");
  if (line <= 0) return;
  const std::string file = bounded_utf8(text_attribute("filename").get(), kMaxName);
  text_ += "  File \"" + file + "\", line " + std::to_string(line) + "\n";
  std::string shown = bounded_utf8(text_attribute("text").get(), kMaxSourceLine);
  if (shown.empty() && file == kSourceName) shown = source_.line(line).substr(0, kMaxSourceLine);
  const std::string_view code = stripped(shown);
  if (code.empty()) return;
  text_.append("    ").append(code).append("\n");
  // The offset counts characters of the line from 1, the blanks before it included.
  const long blanks = static_cast<long>(code.data() - shown.data());
  const long column = number("offset") - 1 - blanks;
  if (column >= 0 && column <= static_cast<long>(code.size())) {
    text_ += "    " + std::string(static_cast<size_t>(column), ' ') + "^\n";
  }
}

void Description::notes(PyObject* exception) {
  const PyRef notes = PyRef::steal(PyObject_GetAttrString(exception, "__notes__"));
  if (!notes) return PyErr_Clear();
  if (!PyList_Check(notes.get())) return;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(notes.get()) && i < Py_ssize_t{kMaxNotes}; ++i) {
    const PyRef note = PyRef::borrow(PyList_GET_ITEM(notes.get(), i));
    text_ += bounded_str(note.get(), kMaxSourceLine) + "\n";
  }
}

void Description::members(PyObject* group, int depth, const std::string& indent) {
#if PY_VERSION_HEX >= 0x030B0000
  if (PyErr_GivenExceptionMatches(group, PyExc_BaseExceptionGroup) == 0) return;
  const PyRef exceptions = PyRef::steal(PyObject_GetAttrString(group, "exceptions"));
  if (!exceptions) return PyErr_Clear();
  if (!PyTuple_Check(exceptions.get())) return;
  const auto count = static_cast<size_t>(PyTuple_GET_SIZE(exceptions.get()));
  for (size_t i = 0; i < count && !is_full(); ++i) {
    const std::string number = std::to_string(i + 1) + " of " + std::to_string(count);
    if (i == kMaxMembers || depth == kMaxGroupDepth) {
      text_ += indent + "... " + std::to_string(count - i) + " more\n";
      return;
    }
    PyObject* member = PyTuple_GET_ITEM(exceptions.get(), static_cast<Py_ssize_t>(i));
    text_ += indent + "+ exception " + number + "\n";
    frames(member, 2, indent);
    text_ += indent + "  " + exception_line(member, kMaxSourceLine) + "\n";
    members(member, depth + 1, indent + "  ");
  }
#else
  (void)group, (void)depth, (void)indent;
#endif
}

void Description::one(PyObject* exception, size_t most_frames) {
  const bool is_syntax_error = PyErr_GivenExceptionMatches(exception, PyExc_SyntaxError) != 0;
  const size_t start = text_.size();
  frames(exception, most_frames, "");
  if (text_.size() != start) text_.insert(start, "Traceback (most recent call last):\n");
  if (is_syntax_error) place_of_syntax_error(exception);
  text_ += exception_line(exception, kMaxMessage) + "\n";
  notes(exception);
  members(exception, 0, "  ");
}

void Description::with_causes(PyObject* exception) {
  enum class Link { kNone, kCause, kContext };
  struct Entry {
    PyRef exception;
    Link link;  // to the one before
  };
  std::vector<Entry> chain = {{PyRef::borrow(exception), Link::kNone}};
  while (chain.size() < kMaxChain) {
    PyObject* last = chain.back().exception.get();
    Link link = Link::kCause;
    PyRef next = PyRef::steal(PyException_GetCause(last));
    if (!next && !reinterpret_cast<PyBaseExceptionObject*>(last)->suppress_context) {
      link = Link::kContext;
      next = PyRef::steal(PyException_GetContext(last));
    }
    const bool is_known = std::any_of(chain.begin(), chain.end(), [&](const Entry& entry) {
      return entry.exception.get() == next.get();
    });
    if (!next || is_known) break;
    chain.push_back({next, link});
  }
  // The exception itself has the first claim on frames, though it is printed last.
  const size_t others = chain.size() - 1;
  const size_t for_first = others == 0 ? kMaxFrames : kMaxFrames / 2;
  const size_t for_others = others == 0 ? 0 : (kMaxFrames - for_first) / others;
  for (size_t i = chain.size(); i-- > 0 && !is_full();) {
    one(chain[i].exception.get(), i == 0 ? for_first : std::max<size_t>(for_others, 1));
    if (chain[i].link == Link::kCause) {
      text_ += "\nThe above exception was the direct cause of the following exception:\n\n";
    } else if (chain[i].link == Link::kContext) {
      text_ += "\nDuring handling of the above exception, another exception occurred:\n\n";
    }
  }
}

// Where a source that does not compile goes wrong, when the exception says so about our source.
std::optional<int64_t> line_of_syntax_error(PyObject* exception) {
  if (PyErr_GivenExceptionMatches(exception, PyExc_SyntaxError) == 0) return std::nullopt;
  const PyRef file = PyRef::steal(PyObject_GetAttrString(exception, "filename"));
  const PyRef line = PyRef::steal(PyObject_GetAttrString(exception, "lineno"));
  PyErr_Clear();
  if (!file || !line || !PyLong_Check(line.get()) ||
      bounded_utf8(file.get(), kMaxName) != kSourceName) {
    return std::nullopt;
  }
  const long number = PyLong_AsLong(line.get());
  if (number == -1) PyErr_Clear();
  if (number <= 0) return std::nullopt;
  return number;
}

}  // namespace

void describe(const Captured& captured, const Source& source, PyObject* exception,
              wire::Report& report) {
  report.message = exception_line(exception, kMaxMessage);
  Description description(captured, source);
  if (const int line = description.user_line(exception); line > 0) {
    report.line = line;
  } else {
    report.line = line_of_syntax_error(exception);
  }
  report.traceback = description.traceback(exception);
}

}  // namespace pyplaypen::python
