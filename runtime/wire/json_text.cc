#include "runtime/wire/json_text.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/wire/utf8.h"

namespace pyplaypen::wire {
namespace {

constexpr uint64_t kEachByte = 0x0101010101010101;
constexpr uint64_t kHighBits = 0x8080808080808080;

// Non-zero when one of the eight bytes is a control character, '"', '\\' or not ASCII. May be
// non-zero for a byte above a real hit, never for eight plain bytes (the carry of a subtraction
// only goes up).
uint64_t not_plain(uint64_t word) {
  const auto has_zero = [](uint64_t w) { return (w - kEachByte) & ~w; };
  const uint64_t control = word - kEachByte * 0x20;
  const uint64_t quote = has_zero(word ^ (kEachByte * '"'));
  const uint64_t backslash = has_zero(word ^ (kEachByte * '\\'));
  return (word | control | quote | backslash) & kHighBits;
}

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

// The first byte that a JSON string cannot hold as it is without a closer look.
const char* skip_plain(const char* at, const char* end) {
  while (end - at >= 16) {
    uint64_t words[2];
    std::memcpy(words, at, sizeof words);
    if ((not_plain(words[0]) | not_plain(words[1])) != 0) break;
    at += sizeof words;
  }
  while (at < end && is_plain(*at)) ++at;
  return at;
}

bool is_not_ascii(char c) { return static_cast<unsigned char>(c) >= 0x80; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Goes through one text; each step returns false after it has set `error`.
class Checker {
 public:
  Checker(std::string_view text, int max_depth)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()), max_depth_(max_depth) {}

  std::optional<std::string> run() {
    if (check() && at_ == end_) return std::nullopt;
    if (error_ == nullptr) error_ = "more text after the value";
    return std::string(error_) + " at byte " + std::to_string(at_ - begin_);
  }

 private:
  bool fail(const char* error) {
    error_ = error;
    return false;
  }

  void skip_space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  bool word(std::string_view expected) {
    if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(expected))
      return fail("no JSON value");
    at_ += expected.size();
    return true;
  }

  bool digits() {
    if (at_ == end_ || !is_digit(*at_)) return fail("a digit is missing in a number");
    while (at_ < end_ && is_digit(*at_)) ++at_;
    return true;
  }

  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      return digits();
    }
    return true;
  }

  bool code_unit(unsigned& unit) {
    unit = 0;
    for (int i = 0; i < 4; ++i) {
      const int digit = at_ < end_ ? hex_digit(*at_) : -1;
      if (digit < 0) return fail("\\u needs four hexadecimal digits");
      unit = unit * 16 + static_cast<unsigned>(digit);
      ++at_;
    }
    return true;
  }

  bool escape() {
    if (at_ == end_) return fail("a string is not closed");
    switch (*at_++) {
      case '"':
      case '\\':
      case '/':
      case 'b':
      case 'f':
      case 'n':
      case 'r':
      case 't':
        return true;
      case 'u': {
        unsigned unit = 0;
        if (!code_unit(unit)) return false;
        if (unit < 0xd800 || unit > 0xdfff) return true;
        unsigned second = 0;
        if (unit > 0xdbff || !take('\\') || !take('u')) return fail("an unpaired surrogate");
        if (!code_unit(second)) return false;
        return (second >= 0xdc00 && second <= 0xdfff) || fail("an unpaired surrogate");
      }
      default:
        --at_;
        return fail("an unknown escape in a string");
    }
  }

  // After the opening quote.
  bool string() {
    for (;;) {
      at_ = skip_plain(at_, end_);
      if (at_ == end_) return fail("a string is not closed");
      if (is_not_ascii(*at_)) {
        do {
          const Utf8Step step = utf8_step(at_, end_);
          if (!step.valid) return fail("a string is not UTF-8");
          at_ += step.length;
        } while (at_ < end_ && is_not_ascii(*at_));
      } else if (*at_ == '"') {
        ++at_;
        return true;
      } else if (*at_ == '\\') {
        ++at_;
        if (!escape()) return false;
      } else {
        return fail("a control character in a string");
      }
    }
  }

  bool key() {
    skip_space();
    if (!take('"')) return fail("an object's key is missing");
    if (!string()) return false;
    skip_space();
    return take(':') || fail("no ':' after an object's key");
  }

  bool open(char closer) {
    if (open_.size() >= static_cast<size_t>(max_depth_)) return fail("nested too deep");
    open_.push_back(closer);
    return true;
  }

  // From the end of a value to the start of the next one, or to the end of the text.
  bool after_value(bool& done) {
    for (;;) {
      skip_space();
      done = open_.empty();
      if (done) return true;
      if (take(',')) return open_.back() == ']' || key();
      if (!take(open_.back()))
        return fail(open_.back() == ']' ? "no ',' or ']' in an array"
                                        : "no ',' or '}' in an object");
      open_.pop_back();
    }
  }

  bool check() {
    for (bool done = false; !done;) {
      skip_space();
      if (at_ == end_) return fail("a value is missing");
      bool opened_filled = false;
      switch (*at_) {
        case '{':
          if (!open('}')) return false;
          ++at_;
          skip_space();
          opened_filled = at_ == end_ || *at_ != '}';
          if (opened_filled && !key()) return false;
          break;
        case '[':
          if (!open(']')) return false;
          ++at_;
          skip_space();
          opened_filled = at_ == end_ || *at_ != ']';
          break;
        case '"':
          ++at_;
          if (!string()) return false;
          break;
        case 't':
          if (!word("true")) return false;
          break;
        case 'f':
          if (!word("false")) return false;
          break;
        case 'n':
          if (!word("null")) return false;
          break;
        default:
          if (*at_ != '-' && !is_digit(*at_)) return fail("no JSON value");
          if (!number()) return false;
      }
      if (!opened_filled && !after_value(done)) return false;
    }
    return true;
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  const int max_depth_;
  const char* error_ = nullptr;
  std::vector<char> open_;  // the closing brackets that are still to come
};

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

void append_escape(std::string& into, char c) {
  constexpr std::string_view kPlain = "\"\\\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\bfnrt";
  into.push_back('\\');
  if (const size_t i = kPlain.find(c); i != std::string_view::npos) {
    into.push_back(kLetters[i]);
    return;
  }
  constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  into.append("u00");
  into.push_back(kHex[byte >> 4]);
  into.push_back(kHex[byte & 15]);
}

}  // namespace

std::optional<std::string> json_error(std::string_view text, int max_depth) {
  return Checker(text, max_depth).run();
}

void json_quote_to(std::string& into, std::string_view bytes) {
  into.reserve(into.size() + bytes.size() + bytes.size() / 8 + 2);
  into.push_back('"');
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  while (at < end) {
    // As long a run as can be copied as it is: plain ASCII and whole UTF-8 characters.
    const char* const run = at;
    Utf8Step step{1, true};
    while (at < end && step.valid) {
      if (is_not_ascii(*at)) {
        step = utf8_step(at, end);
        if (step.valid) at += step.length;
      } else {
        const char* const plain = at;
        at = skip_plain(at, end);
        if (at == plain) break;
      }
    }
    into.append(run, static_cast<size_t>(at - run));
    if (at == end) break;
    if (step.valid) {
      append_escape(into, *at++);
    } else {
      into.append(kReplacement);
      at += step.length;
    }
  }
  into.push_back('"');
}

std::string json_quote(std::string_view bytes) {
  std::string text;
  json_quote_to(text, bytes);
  return text;
}

}  // namespace pyplaypen::wire
