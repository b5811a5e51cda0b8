#include "runtime/python/source.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <optional>

#include "runtime/python/py_error.h"
#include "runtime/python/text.h"

namespace pyplaypen::python {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Takes the first line off text, its end not included.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find_first_of("\r\n");
  const std::string_view line = text.substr(0, end);
  if (end == std::string_view::npos) {
    text = {};
  } else {
    text.remove_prefix(text.substr(end, 2) == "\r\n" ? end + 2 : end + 1);
  }
  return line;
}

// The encoding that a comment declares (PEP 263), if this line does.
std::string encoding_in(std::string_view line) {
  const size_t start = line.find_first_not_of(" \t\f");
  if (start == std::string_view::npos || line[start] != '#') return {};
  for (size_t at = line.find("coding", start); at != std::string_view::npos;
       at = line.find("coding", at + 1)) {
    std::string_view rest = line.substr(at + 6);
    if (rest.empty() || (rest[0] != ':' && rest[0] != '=')) continue;
    rest.remove_prefix(1);
    while (!rest.empty() && (rest[0] == ' ' || rest[0] == '\t')) rest.remove_prefix(1);
    size_t length = 0;
    while (length < rest.size() &&
           (std::isalnum(static_cast<unsigned char>(rest[length])) != 0 ||
            std::string_view("-_.").find(rest[length]) != std::string_view::npos)) {
      ++length;
    }
    if (length > 0) return std::string(rest.substr(0, length));
  }
  return {};
}

std::string declared_encoding(std::string_view text) {
  const std::string_view first = take_line(text);
  std::string encoding = encoding_in(first);
  if (!encoding.empty()) return encoding;
  // The second line counts only after a line that is blank or a comment.
  const size_t code = first.find_first_not_of(" \t\f");
  if (code != std::string_view::npos && first[code] != '#') return {};
  return encoding_in(take_line(text));
}

}  // namespace

Source::Source(const std::string& bytes) : bytes_(bytes), text_(bytes) {
  if (text_.starts_with(kByteOrderMark)) {
    text_.remove_prefix(kByteOrderMark.size());
    is_plain_ = false;
  }
  const std::string encoding = declared_encoding(text_);
  if (encoding.empty()) return;
  is_plain_ = false;
  const PyRef decoded = PyRef::steal(PyUnicode_Decode(
      text_.data(), static_cast<Py_ssize_t>(text_.size()), encoding.c_str(), "replace"));
  const PyRef utf8 =
      decoded ? PyRef::steal(PyUnicode_AsEncodedString(decoded.get(), "utf-8", "replace"))
              : PyRef();
  // An unknown encoding is the compiler's to report; until then the bytes stand for themselves.
  if (!utf8) {
    PyErr_Clear();
    return;
  }
  decoded_.assign(PyBytes_AS_STRING(utf8.get()), static_cast<size_t>(PyBytes_GET_SIZE(utf8.get())));
  text_ = decoded_;
}

std::string_view Source::line(int64_t number) const {
  std::string_view rest = text_;
  for (int64_t skipped = 1; skipped < number && !rest.empty(); ++skipped) take_line(rest);
  return number < 1 ? std::string_view() : take_line(rest);
}

PyRef Source::lines() const {
  PyRef list = PyRef::steal(PyList_New(0));
  if (!list) return {};
  std::string with_end;
  for (std::string_view rest = text_; !rest.empty();) {
    const char* start = rest.data();
    std::string_view line = take_line(rest);
    if (line.data() + line.size() < text_.data() + text_.size() &&
        line.data()[line.size()] == '\n') {
      line = std::string_view(start, line.size() + 1);
    } else {
      with_end.assign(line).push_back('\n');
      line = with_end;
    }
    const PyRef item = PyRef::steal(PyUnicode_DecodeUTF8(
        line.data(), static_cast<Py_ssize_t>(line.size()), is_plain_ ? "strict" : "replace"));
    if (!item) {
      const PyRef error = take_exception();
      Py_ssize_t offset = 0;
      if (!PyErr_GivenExceptionMatches(error.get(), PyExc_UnicodeDecodeError) ||
          PyUnicodeDecodeError_GetStart(error.get(), &offset) != 0) {
        PyErr_Clear();
        PyErr_NoMemory();
        return {};
      }
      const size_t place = static_cast<size_t>(start - bytes_.data()) + static_cast<size_t>(offset);
      char message[80];
      std::snprintf(message, sizeof message,
                    "the source is not UTF-8 (byte 0x%02x) and declares no other encoding",
                    static_cast<unsigned char>(bytes_[place]));
      refuse(message, place);
      return {};
    }
    if (PyList_Append(list.get(), item.get()) != 0) return {};
  }
  return list;
}

bool Source::refuse(const char* message, size_t offset) const {
  std::string_view before = std::string_view(bytes_).substr(0, offset);
  int line = 0;
  std::string_view last;
  do {
    last = take_line(before);
    ++line;
  } while (!before.empty());
  const char end = offset > 0 ? bytes_[offset - 1] : 'x';
  if (offset > 0 && (end == '\n' || end == '\r')) {
    ++line;
    last = {};
  }
  const PyRef arguments = PyRef::steal(Py_BuildValue("(s(siis#))", message, kSourceName, line,
                                                     static_cast<int>(last.size()) + 1, "",
                                                     static_cast<Py_ssize_t>(0)));
  if (arguments) PyErr_SetObject(PyExc_SyntaxError, arguments.get());
  return false;
}

}  // namespace pyplaypen::python
