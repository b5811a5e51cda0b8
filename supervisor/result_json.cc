// Result -> one line of JSON. Text is spliced, so that the value arrives as the call wrote it.
#include <array>
#include <cstdio>

#include "pyplaypen/result.h"
#include "runtime/wire/json_text.h"

namespace pyplaypen {
namespace {

using wire::json_quote;

constexpr std::array<std::string_view, 16> kErrorTypeNames = {
    "syntax",        "runtime",          "serialization",  "timeout",      "cpu_limit", "memory_limit",
    "process_limit", "open_files_limit", "artifact_limit", "return_limit", "busy",      "cancelled",
    "crash",         "protocol",         "extension",      "internal"};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

// Appends ,"key":value with the comma where one is due.
class Object {
 public:
  void put(std::string_view key, std::string_view json) {
    text_ += text_.size() > 1 ? ",\"" : "\"";
    text_.append(key).append("\":").append(json);
  }
  std::string close() { return std::move(text_) + "}"; }
  bool empty() const { return text_.size() == 1; }

 private:
  std::string text_ = "{";
};

std::string details_json(const ErrorInfo& error) {
  Object details;
  if (!error.traceback.empty()) details.put("traceback", json_quote(error.traceback));
  if (error.line) details.put("line", std::to_string(*error.line));
  if (error.exit_code) details.put("exit_code", std::to_string(*error.exit_code));
  if (error.signal) details.put("signal", std::to_string(*error.signal));
  if (!error.value_type.empty()) details.put("value_type", json_quote(error.value_type));
  if (!error.value_repr.empty()) details.put("value_repr", json_quote(error.value_repr));
  return details.empty() ? "" : details.close();
}

std::string error_json(const ErrorInfo& error) {
  Object object;
  object.put("type", json_quote(error_type_name(error.type)));
  object.put("message", json_quote(error.message));
  if (const std::string details = details_json(error); !details.empty()) object.put("details", details);
  return object.close();
}

std::string artifact_json(const Artifact& artifact) {
  Object object;
  object.put("path", json_quote(artifact.path));
  object.put("name", json_quote(artifact.name));
  object.put("bytes", std::to_string(artifact.bytes));
  object.put("mime_type", json_quote(artifact.mime_type));
  if (!artifact.sha256.empty()) object.put("sha256", json_quote(artifact.sha256));
  if (artifact.path_bytes_base64) object.put("path_bytes", json_quote(*artifact.path_bytes_base64));
  if (artifact.name_bytes_base64) object.put("name_bytes", json_quote(*artifact.name_bytes_base64));
  return object.close();
}

template <typename Items, typename ToJson>
std::string list_json(const Items& items, ToJson to_json) {
  std::string text = "[";
  for (const auto& item : items) {
    if (text.size() > 1) text += ",";
    text += to_json(item);
  }
  return text + "]";
}

std::string_view boolean(bool value) { return value ? "true" : "false"; }

}  // namespace

std::string_view error_type_name(ErrorType type) { return kErrorTypeNames[static_cast<size_t>(type)]; }

std::string to_json(const Result& result) {
  Object truncated;
  truncated.put("stdout", boolean(result.stdout_output.truncated));
  truncated.put("stderr", boolean(result.stderr_output.truncated));
  Object usage;
  usage.put("wall_ms", number(result.usage.wall_ms));
  usage.put("queue_ms", number(result.usage.queue_ms));
  usage.put("cpu_ms", number(result.usage.cpu_ms));
  usage.put("max_rss_bytes", std::to_string(result.usage.max_rss_bytes));

  Object object;
  object.put("status", result.ok() ? "\"ok\"" : "\"error\"");
  object.put("return_value", result.return_value);
  object.put("stdout", json_quote(result.stdout_output.bytes));
  object.put("stderr", json_quote(result.stderr_output.bytes));
  object.put("truncated", truncated.close());
  object.put("stdout_sha256", json_quote(result.stdout_output.sha256));
  object.put("stderr_sha256", json_quote(result.stderr_output.sha256));
  object.put("error", result.error ? error_json(*result.error) : "null");
  object.put("artifacts", list_json(result.artifacts, artifact_json));
  object.put("artifact_root", result.artifact_root.empty() ? "null" : json_quote(result.artifact_root));
  if (!result.skipped.empty())
    object.put("skipped", list_json(result.skipped, [](const std::string& s) { return json_quote(s); }));
  object.put("usage", usage.close());
  object.put("request_id", json_quote(result.request_id));
  return object.close();
}

}  // namespace pyplaypen
