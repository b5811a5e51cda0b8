#include "runtime/python/json_writer.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace pyplaypen::python {
namespace {

constexpr size_t kNumberRoom = 48;  // of any int64_t or double
// Text is escaped in pieces, so that room for the worst case never has to be made for all of it.
constexpr size_t kPiece = 4096;
constexpr size_t kWorstEscape = 6;  // "\u001f"
constexpr size_t kShort = 64;
constexpr size_t kFirstRoom = 512;

constexpr uint64_t each_byte(unsigned char byte) { return 0x0101010101010101ULL * byte; }

// Whether any of eight ASCII bytes is a control character, a quote or a backslash.
bool needs_escape(uint64_t word) {
  const uint64_t quote = word ^ each_byte('"');
  const uint64_t backslash = word ^ each_byte('\\');
  const uint64_t control = (word - each_byte(0x20)) & ~word;
  const uint64_t is_quote = (quote - each_byte(1)) & ~quote;
  const uint64_t is_backslash = (backslash - each_byte(1)) & ~backslash;
  return ((control | is_quote | is_backslash) & each_byte(0x80)) != 0;
}

char* escape(char* to, unsigned char c) {
  constexpr char kHex[] = "0123456789abcdef";
  *to++ = '\\';
  switch (c) {
    case '"':
    case '\\':
      *to++ = static_cast<char>(c);
      return to;
    case '\b':
      *to++ = 'b';
      return to;
    case '\f':
      *to++ = 'f';
      return to;
    case '\n':
      *to++ = 'n';
      return to;
    case '\r':
      *to++ = 'r';
      return to;
    case '\t':
      *to++ = 't';
      return to;
    default:
      std::memcpy(to, "u00", 3);
      to[3] = kHex[c >> 4];
      to[4] = kHex[c & 15];
      return to + 5;
  }
}

char* put_ascii(char* to, unsigned char c) {
  if (c < 0x20 || c == '"' || c == '\\') return escape(to, c);
  *to++ = static_cast<char>(c);
  return to;
}

char* put_ascii(char* to, const unsigned char* from, size_t length) {
  const unsigned char* end = from + length;
  while (end - from >= 8) {
    uint64_t word = 0;
    std::memcpy(&word, from, sizeof word);
    if (needs_escape(word)) {
      for (int i = 0; i < 8; ++i) to = put_ascii(to, *from++);
    } else {
      std::memcpy(to, &word, sizeof word);
      to += 8;
      from += 8;
    }
  }
  while (from != end) to = put_ascii(to, *from++);
  return to;
}

char* put_utf8(char* to, uint32_t c) {
  if (c < 0x800) {
    *to++ = static_cast<char>(0xC0 | (c >> 6));
  } else {
    if (c < 0x10000) {
      *to++ = static_cast<char>(0xE0 | (c >> 12));
    } else {
      *to++ = static_cast<char>(0xF0 | (c >> 18));
      *to++ = static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    }
    *to++ = static_cast<char>(0x80 | ((c >> 6) & 0x3F));
  }
  *to++ = static_cast<char>(0x80 | (c & 0x3F));
  return to;
}

}  // namespace

void JsonWriter::grow(size_t bytes) {
  text_.resize(std::max({size_ + bytes, text_.size() * 2, kFirstRoom}));
}

std::string JsonWriter::take() {
  text_.resize(size_);
  size_ = 0;
  return std::move(text_);
}

void JsonWriter::literal(std::string_view text) {
  if (refuses(text.size())) return;
  reserve(text.size());
  std::memcpy(text_.data() + size_, text.data(), text.size());
  size_ += text.size();
}

void JsonWriter::integer(int64_t number) {
  if (full_) return;
  reserve(kNumberRoom);
  char* start = text_.data() + size_;
  written_to(std::to_chars(start, start + kNumberRoom, number).ptr);
}

void JsonWriter::finite_double(double number) {
  if (full_) return;
  // Both give the shortest digits that read back as the same number; only their layout differs.
  char scientific[kNumberRoom];
  const char* end = std::to_chars(scientific, scientific + sizeof scientific, number,
                                  std::chars_format::scientific)
                        .ptr;
  const char* from = scientific;
  reserve(kNumberRoom);
  char* to = text_.data() + size_;
  if (*from == '-') *to++ = *from++;
  char digits[20];
  int count = 0;
  for (; from != end && *from != 'e'; ++from) {
    if (*from != '.') digits[count++] = *from;
  }
  int exponent = 0;
  if (from != end) {
    ++from;
    if (from != end && *from == '+') ++from;  // from_chars takes no plus
    std::from_chars(from, end, exponent);
  }
  while (count > 1 && digits[count - 1] == '0') --count;
  const int point = exponent + 1;  // digits before the point
  const auto put = [&](int first, int last) {
    for (int i = first; i < last; ++i) *to++ = i < count ? digits[i] : '0';
  };
  if (point > -4 && point <= 16) {  // the bounds of float.__repr__
    if (point <= 0) {
      *to++ = '0';
      *to++ = '.';
      for (int i = point; i < 0; ++i) *to++ = '0';
      put(0, count);
    } else {
      put(0, point);
      *to++ = '.';
      put(point, std::max(count, point + 1));
    }
  } else {
    put(0, 1);
    if (count > 1) {
      *to++ = '.';
      put(1, count);
    }
    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    const int magnitude = exponent < 0 ? -exponent : exponent;
    if (magnitude < 10) *to++ = '0';
    to = std::to_chars(to, text_.data() + text_.size(), magnitude).ptr;
  }
  written_to(to);
}

void JsonWriter::escaped_ascii(const unsigned char* from, size_t length) {
  while (length > 0 && !full_) {
    const size_t piece = std::min(length, kPiece);
    reserve(piece * kWorstEscape);
    written_to(put_ascii(text_.data() + size_, from, piece));
    from += piece;
    length -= piece;
  }
}

template <typename Character>
bool JsonWriter::escaped(const Character* from, size_t length) {
  while (length > 0 && !full_) {
    const size_t piece = std::min(length, kPiece);
    reserve(piece * kWorstEscape);
    char* to = text_.data() + size_;
    for (const Character* end = from + piece; from != end; ++from) {
      const uint32_t c = *from;
      if (c < 0x80) {
        to = put_ascii(to, static_cast<unsigned char>(c));
      } else if (c >= 0xD800 && c <= 0xDFFF) {
        return false;
      } else {
        to = put_utf8(to, c);
      }
    }
    written_to(to);
    length -= piece;
  }
  return true;
}

bool JsonWriter::string(PyObject* text) {
  const auto length = static_cast<size_t>(PyUnicode_GET_LENGTH(text));
  if (length > limit_ || refuses(length + 2)) {
    full_ = true;
    return true;
  }
  const bool is_ascii = PyUnicode_IS_ASCII(text);
  if (is_ascii && length <= kShort) {
    reserve(kShort * kWorstEscape + 2);
    char* to = text_.data() + size_;
    *to++ = '"';
    to = put_ascii(to, PyUnicode_1BYTE_DATA(text), length);
    *to++ = '"';
    written_to(to);
    return true;
  }
  character('"');
  bool carried = true;
  if (is_ascii) {
    escaped_ascii(PyUnicode_1BYTE_DATA(text), length);
  } else if (PyUnicode_KIND(text) == PyUnicode_1BYTE_KIND) {
    carried = escaped(PyUnicode_1BYTE_DATA(text), length);
  } else if (PyUnicode_KIND(text) == PyUnicode_2BYTE_KIND) {
    carried = escaped(PyUnicode_2BYTE_DATA(text), length);
  } else {
    carried = escaped(PyUnicode_4BYTE_DATA(text), length);
  }
  character('"');
  return carried;
}

}  // namespace pyplaypen::python
