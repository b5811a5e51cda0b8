#include "cli/batch_request.h"

#include <nlohmann/json.hpp>

namespace pyplaypen::cli {
namespace {

using nlohmann::json;

// json::dump recurses, and so does what reads "extra" in the call: once a level.
constexpr int kMaxDepth = 200;

// Discarded where it is no JSON. Throws Refused where it is nested too deep.
json parse(std::string_view text) {
  return json::parse(
      text,
      [](int depth, json::parse_event_t, const json&) {
        if (depth > kMaxDepth) throw Refused("nested deeper than " + std::to_string(kMaxDepth) + " levels");
        return true;
      },
      false);
}

// A \u escape of a surrogate without its other half: legal in what json.dumps writes, not in JSON text
// as a parser must refuse it. Gives the line with each replaced by U+FFFD, or nothing when there is none.
std::optional<std::string> without_lone_surrogates(std::string_view line) {
  std::string text(line);
  bool found = false;
  const auto unit_at = [&](size_t at) -> int {
    if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return -1;
    int unit = 0;
    for (size_t i = at + 2; i < at + 6; ++i) {
      const char c = text[i];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return -1;
      unit = unit * 16 + digit;
    }
    return unit;
  };
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') continue;
    const int unit = unit_at(at);
    if (unit < 0) {
      ++at;  // the escaped character, a second backslash among them
      continue;
    }
    const bool high = unit >= 0xd800 && unit < 0xdc00;
    const bool low = unit >= 0xdc00 && unit < 0xe000;
    const int next = high ? unit_at(at + 6) : -1;
    if (high && next >= 0xdc00 && next < 0xe000) {
      at += 11;
    } else {
      if (high || low) {
        text.replace(at + 2, 4, "fffd");
        found = true;
      }
      at += 5;
    }
  }
  if (!found) return std::nullopt;
  return text;
}

ErrorInfo refusal(ErrorType type, uint64_t number, const std::string& why) {
  ErrorInfo error;
  error.type = type;
  error.message = "line " + std::to_string(number) + ": " + why;
  return error;
}

const std::string& string_of(const json& value, const char* key) {
  if (!value.is_string()) throw Refused(std::string("\"") + key + "\" must be a string");
  return value.get_ref<const std::string&>();
}

void read_member(BatchRequest& request, const std::string& key, const json& value) {
  if (key == "id") {
    request.id_json = value.dump();
  } else if (key == "code") {
    request.code = string_of(value, "code");
  } else if (key == "extra") {
    request.context.extra_json = value.dump();
  } else if (key == "artifact_root") {
    request.context.artifact_root = string_of(value, "artifact_root");
  } else if (key == "limits") {
    if (!value.is_object()) throw Refused("\"limits\" must be an object");
    for (const auto& [name, limit] : value.items())
      set_limit(request.limits, name, limit.is_string() ? limit.get<std::string>() : limit.dump());
  } else if (key == "env") {
    if (!value.is_object()) throw Refused("\"env\" must be an object");
    Environment& environment = request.context.environment.emplace();
    for (const auto& [name, text] : value.items()) environment[name] = string_of(text, "env");
  } else {
    throw Refused("unknown key \"" + key + "\"; the keys are id, code, limits, env, extra, artifact_root");
  }
}

}  // namespace

BatchRequest parse_batch_line(std::string_view line, uint64_t number, const Context& defaults,
                              const Limits& limits) {
  BatchRequest request;
  request.id_json = std::to_string(number);
  request.context = defaults;
  request.limits = limits;
  try {
    json document = parse(line);
    bool lone_surrogates = false;
    if (document.is_discarded()) {
      if (const auto mended = without_lone_surrogates(line)) {
        document = parse(*mended);
        lone_surrogates = true;
      }
    }
    if (document.is_discarded()) {
      try {
        document = json::parse(line);  // throws, and says where
      } catch (const json::parse_error& error) {
        throw Refused(std::string("not JSON: ") + error.what());
      }
    }
    if (!document.is_object()) throw Refused("not a JSON object");
    // The id first: an error about another member then carries it.
    if (const auto id = document.find("id"); id != document.end()) read_member(request, "id", *id);
    for (const auto& [key, value] : document.items()) read_member(request, key, value);
    if (!document.contains("code")) throw Refused("\"code\" is missing");
    check_limits(request.limits);
    if (lone_surrogates)
      request.refusal = refusal(ErrorType::kSyntax, number, "the source contains a lone surrogate");
  } catch (const std::exception& error) {
    request.refusal = refusal(ErrorType::kProtocol, number, error.what());
  }
  return request;
}

}  // namespace pyplaypen::cli
