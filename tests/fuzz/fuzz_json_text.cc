// json_error against an independent parser, and json_quote against json_error.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/sys/invariant.h"
#include "runtime/wire/json_text.h"
#include "runtime/wire/utf8.h"

namespace {

constexpr int kDepth = 50;

// Where nlohmann_json and RFC 8259 differ: it skips a byte order mark, takes NUL for the end, and
// refuses numbers beyond a double, of which an exponent of three digits or many digits are a sign.
bool is_comparable(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf") || text.find('\0') != std::string_view::npos) return false;
  size_t digits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    digits = text[i] >= '0' && text[i] <= '9' ? digits + 1 : 0;
    if (digits >= 3 &&
        (i < 300 ? text.substr(0, i) : text).find_first_of("eE") != std::string_view::npos)
      return false;
    if (digits >= 300) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pyplaypen::wire;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto error = json_error(text, kDepth);
  if (is_comparable(text) && (!error || error->find("too deep") == std::string::npos))
    PYPLAYPEN_INVARIANT(nlohmann::json::accept(text) == !error);
  if (!error) PYPLAYPEN_INVARIANT(!json_error(text, kDepth + 1));

  const std::string quoted = json_quote(text);
  PYPLAYPEN_INVARIANT(!json_error(quoted, 0));
  if (is_utf8(text)) PYPLAYPEN_INVARIANT(nlohmann::json::parse(quoted).get<std::string>() == text);
  return 0;
}
