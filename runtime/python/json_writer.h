// JSON text that stops growing at a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/python/py_ref.h"

namespace pyplaypen::python {

// Writes numbers as Python's repr does, text as UTF-8. What would pass the limit is not written and
// full() stays true from then on; the limit is looked at before anything large is copied. Knows no
// structure: commas and brackets are the caller's. Throws std::bad_alloc.
class JsonWriter {
 public:
  explicit JsonWriter(size_t limit) : limit_(limit) {}

  bool full() const { return full_; }
  // Whether this many bytes more would pass the limit; then full() is true.
  bool refuses(size_t bytes) {
    if (bytes > limit_ - size_) full_ = true;
    return full_;
  }

  void give_up() { full_ = true; }

  void character(char c) {
    if (refuses(1)) return;
    reserve(1);
    text_[size_++] = c;
  }
  void literal(std::string_view text);
  void integer(int64_t number);
  void finite_double(double number);
  // With its quotes. False, with nothing promised about what was written: a lone surrogate.
  [[nodiscard]] bool string(PyObject* text);

  // The text; the writer is empty afterwards.
  std::string take();

 private:
  void reserve(size_t bytes) {
    if (text_.size() - size_ < bytes) grow(bytes);
  }
  void grow(size_t bytes);
  // Ends what was written into reserved space without asking.
  void written_to(const char* end) {
    const auto size = static_cast<size_t>(end - text_.data());
    if (size > limit_) {
      full_ = true;
    } else {
      size_ = size;
    }
  }
  template <typename Character>
  bool escaped(const Character* from, size_t length);
  void escaped_ascii(const unsigned char* from, size_t length);

  std::string text_;  // its size is the room; size_ of it is used
  size_t size_ = 0;   // <= limit_
  size_t limit_;
  bool full_ = false;
};

}  // namespace pyplaypen::python
