#include "runtime/wire/json_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/wire/utf8.h"

namespace pyplaypen::wire {
namespace {

using namespace std::string_literals;

constexpr int kDepth = 50;

std::string nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') +
         std::string(static_cast<size_t>(depth), ']');
}

TEST(JsonError, AcceptsEachKindOfValue) {
  for (const char* text : {"null",
                           "true",
                           "false",
                           "0",
                           "-0",
                           "12",
                           "-1.5e+10",
                           "1E9",
                           "0.0",
                           "\"\"",
                           "[]",
                           "{}",
                           " [ ] ",
                           "\t{\n}\r ",
                           "[1,2 , 3]",
                           "{\"a\":1,\"b\":[{}]}",
                           "{\"a\":1,\"a\":2}",
                           "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                           "\"\\u0000\\uFFff\"",
                           "\"\\ud83d\\ude00\"",
                           "\"\x7f\"",
                           "\"é日😀\"",
                           "[[],[],{}]"})
    EXPECT_EQ(json_error(text, kDepth), std::nullopt) << text;
}

TEST(JsonError, RefusesWhatIsNotOneValue) {
  for (const std::string& text : {""s,
                                  " "s,
                                  "nul"s,
                                  "nulll"s,
                                  "True"s,
                                  "NaN"s,
                                  "Infinity"s,
                                  "-"s,
                                  "01"s,
                                  "+1"s,
                                  "1."s,
                                  ".5"s,
                                  "1e"s,
                                  "1e+"s,
                                  "0x1"s,
                                  "1 2"s,
                                  "[1 2]"s,
                                  "[1,]"s,
                                  "[,1]"s,
                                  "["s,
                                  "]"s,
                                  "[1"s,
                                  "[}"s,
                                  "{]"s,
                                  "{1:2}"s,
                                  "{\"a\"}"s,
                                  "{\"a\":}"s,
                                  "{\"a\":1,}"s,
                                  "{,}"s,
                                  "{\"a\" 1}"s,
                                  "\""s,
                                  "\"\\\""s,
                                  "\"\\x\""s,
                                  "\"\\u12\""s,
                                  "\"\\u12g4\""s,
                                  "'a'"s,
                                  "\"a\nb\""s,
                                  "\"\0\""s,
                                  "1\0"s,
                                  "null,"s,
                                  "[]]"s,
                                  "{}}"s,
                                  "\v1"s,
                                  "// 1"s,
                                  "\xef\xbb\xbf"
                                  "1"s})
    EXPECT_NE(json_error(text, kDepth), std::nullopt) << text;
}

TEST(JsonError, RefusesUnpairedSurrogates) {
  for (const char* text :
       {"\"\\ud800\"", "\"\\udc00\"", "\"\\ud800x\"", "\"\\ud800\\n\"", "\"\\ud800\\ud800\"",
        "\"\\udfff\\udc00\"", "\"\\ud800\\u0041\"", "\"\xed\xa0\x80\"", "\"\xed\xbf\xbf\""})
    EXPECT_NE(json_error(text, kDepth), std::nullopt) << text;
}

TEST(JsonError, RefusesStringsThatAreNotUtf8) {
  for (const std::string& bytes :
       {"\x80"s, "\xc0\xaf"s, "\xc1\xbf"s, "\xe0\x80\x80"s, "\xf0\x80\x80\x80"s,
        "\xf4\x90\x80\x80"s, "\xf5\x80\x80\x80"s, "\xff"s, "\xe6\x97"s, "\xc3"s})
    EXPECT_NE(json_error("\"" + bytes + "\"", kDepth), std::nullopt);
}

TEST(JsonError, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(json_error("[1, x]", kDepth), "no JSON value at byte 4");
  EXPECT_EQ(json_error("1 1", kDepth), "more text after the value at byte 2");
  EXPECT_EQ(json_error("[[1]]", 1), "nested too deep at byte 1");
}

TEST(JsonError, DepthCountsContainersInsideEachOther) {
  EXPECT_EQ(json_error("1", 0), std::nullopt);
  EXPECT_NE(json_error("[]", 0), std::nullopt);
  EXPECT_EQ(json_error(nested(50), 50), std::nullopt);
  EXPECT_NE(json_error(nested(51), 50), std::nullopt);
  EXPECT_EQ(json_error("[" + nested(49) + "," + nested(49) + "]", 50), std::nullopt);
  EXPECT_NE(json_error(std::string(10'000'000, '['), 50), std::nullopt);
  EXPECT_EQ(json_error(nested(1'000'000), 1'000'000), std::nullopt) << "the check is not recursive";
}

TEST(JsonError, NumbersMayHaveAnyLength) {
  EXPECT_EQ(json_error(std::string(5000, '9'), kDepth), std::nullopt);
  EXPECT_EQ(
      json_error("-" + std::string(1'000'000, '7') + "." + std::string(1'000'000, '3') + "e999999",
                 kDepth),
      std::nullopt);
}

TEST(JsonError, EveryByteInEveryPlaceOfAWord) {
  // The string scan works on words of bytes: a bad byte must show at each offset.
  for (size_t length = 1; length <= 40; ++length) {
    for (size_t place = 0; place < length; ++place) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string inside(length, 'a');
        inside[place] = static_cast<char>(byte);
        const bool good = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
        // '\\' before a plain 'a' is an unknown escape, before the closing quote it leaves it open.
        ASSERT_EQ(!json_error("\"" + inside + "\"", kDepth), good)
            << length << " " << place << " " << byte;
      }
    }
  }
}

// A random value as text with random white space; its numbers fit a double.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  std::string value(int depth) {
    static const std::vector<std::string> kScalars = {"null",
                                                      "true",
                                                      "false",
                                                      "0",
                                                      "-0",
                                                      "17",
                                                      "-3.25",
                                                      "1e3",
                                                      "2.5E-2",
                                                      "\"\"",
                                                      "\"a\"",
                                                      "\"é\"",
                                                      "\"日本\"",
                                                      "\"😀\"",
                                                      "\"\\n\"",
                                                      "\"\\u00e9\"",
                                                      "\"\\ud83d\\ude00\"",
                                                      "\"\\/\""};
    const size_t kind = depth == 0 ? 0 : below(4);
    if (kind < 2) return space() + kScalars[below(kScalars.size())] + space();
    const bool object = kind == 3;
    std::string text = object ? "{" : "[";
    for (size_t i = 0, count = below(4); i < count; ++i) {
      if (i > 0) text += ",";
      if (object) text += space() + "\"k" + std::to_string(below(3)) + "\"" + space() + ":";
      text += value(depth - 1);
    }
    return space() + text + space() + (object ? "}" : "]") + space();
  }

  // One to three bytes dropped, doubled, replaced or swapped with one from a set that matters.
  std::string mutated(std::string text) {
    static const std::string kBytes =
        "[]{},:\"\\0123456789-+.eEtfnu \n\x1f\x7f\x80\xc3\xe6\xed\xf0\xff/bd8";
    for (size_t i = 0, count = 1 + below(3); i < count && !text.empty(); ++i) {
      const size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text.erase(at, 1);
          break;
        case 1:
          text.insert(at, 1, text[at]);
          break;
        case 2:
          text[at] = kBytes[below(kBytes.size())];
          break;
        default:
          text.insert(at, 1, kBytes[below(kBytes.size())]);
          break;
      }
    }
    return text;
  }

  size_t below(size_t limit) { return random_() % limit; }

 private:
  std::string space() {
    static const std::vector<std::string> kSpaces = {"", "", "", "", " ", "\n", "\t \r"};
    return kSpaces[below(kSpaces.size())];
  }

  std::mt19937 random_;
};

// nlohmann_json refuses numbers beyond a double; a mutation can make one ("17e1000").
bool has_long_exponent(std::string_view text) {
  for (size_t e = text.find_first_of("eE"); e != std::string_view::npos;
       e = text.find_first_of("eE", e + 1)) {
    std::string_view digits = text.substr(e + 1);
    if (digits.starts_with('+') || digits.starts_with('-')) digits.remove_prefix(1);
    if (std::min(digits.find_first_not_of("0123456789"), digits.size()) >= 3) return true;
  }
  return false;
}

TEST(JsonError, AgreesWithAnIndependentParser) {
  Generator generator(20240607);
  int accepted = 0;
  int refused = 0;
  for (int i = 0; i < 60'000; ++i) {
    const std::string text = generator.value(5);
    ASSERT_EQ(json_error(text, kDepth), std::nullopt) << text;
    const std::string other = generator.mutated(text);
    if (has_long_exponent(other)) continue;
    const bool expected = nlohmann::json::accept(other);
    ASSERT_EQ(!json_error(other, kDepth), expected) << other;
    ++(expected ? accepted : refused);
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(JsonQuote, EscapesWhatMustBe) {
  EXPECT_EQ(json_quote(""), "\"\"");
  EXPECT_EQ(json_quote("a\"b\\c/"), R"("a\"b\\c/")");
  EXPECT_EQ(json_quote("\b\f\n\r\t"), R"("\b\f\n\r\t")");
  EXPECT_EQ(json_quote("\0\x01\x1f\x7f"s), "\"\\u0000\\u0001\\u001f\x7f\"");
  EXPECT_EQ(json_quote("é日😀"), "\"é日😀\"");
}

TEST(JsonQuote, ReplacesWhatIsNotUtf8) {
  // The expected texts are those of bytes.decode(errors="replace") in Python.
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(json_quote("\xff"), "\"" + r + "\"");
  EXPECT_EQ(json_quote("a\x80z"), "\"a" + r + "z\"");
  EXPECT_EQ(json_quote("\xe6\x97"), "\"" + r + "\"");
  EXPECT_EQ(json_quote("\xe6\x97z"), "\"" + r + "z\"");
  EXPECT_EQ(json_quote("\xf0\x9f\x98\""), "\"" + r + "\\\"\"");
  EXPECT_EQ(json_quote("\xc0\xaf"), "\"" + r + r + "\"");
  EXPECT_EQ(json_quote("\xed\xa0\x80"), "\"" + r + r + r + "\"");
  EXPECT_EQ(json_quote("\xf5\x80"), "\"" + r + r + "\"");
  EXPECT_EQ(json_quote("日\xe6\x97本"), "\"日" + r + "本\"");
}

TEST(JsonQuote, ReadsBackAsTheSameText) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 3 == 0 ? random() : 'a' + random() % 26);
    const std::string quoted = json_quote(bytes);
    ASSERT_EQ(json_error(quoted, 0), std::nullopt);
    const std::string back = nlohmann::json::parse(quoted).get<std::string>();
    if (is_utf8(bytes))
      ASSERT_EQ(back, bytes);
    else
      ASSERT_NE(back.find("\xef\xbf\xbd"), std::string::npos);
  }
}

TEST(JsonQuote, AppendsToWhatIsThere) {
  std::string text = "{\"stdout\":";
  json_quote_to(text, "x");
  EXPECT_EQ(text, "{\"stdout\":\"x\"");
}

}  // namespace
}  // namespace pyplaypen::wire
