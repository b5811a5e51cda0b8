// The source of a call: bytes as given, and its lines as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/python/py_ref.h"

namespace pyplaypen::python {

inline constexpr char kSourceName[] = "<sandbox_code>";

// Lines are counted and decoded as Python's tokenizer does: universal newlines, a byte order mark,
// a PEP 263 cookie. The bytes must outlive the object and end in a NUL that is not part of them.
class Source {
 public:
  explicit Source(const std::string& bytes);

  const std::string& bytes() const { return bytes_; }

  // Neither a byte order mark nor a cookie: the bytes are UTF-8 or an error.
  bool is_plain() const { return is_plain_; }

  // A line without its end, as UTF-8; counted from 1, empty when there is none.
  std::string_view line(int64_t number) const;

  // A new list of str, one a line, ends included as "\n" (the last one's, too): what linecache
  // keeps. Empty with a Python exception set: SyntaxError when a plain source is no UTF-8.
  PyRef lines() const;

  // Sets SyntaxError with this place; always false.
  bool refuse(const char* message, size_t offset) const;

 private:
  const std::string& bytes_;
  std::string decoded_;    // only for sources in another encoding
  std::string_view text_;  // UTF-8, if the source is in order
  bool is_plain_ = true;
};

}  // namespace pyplaypen::python
