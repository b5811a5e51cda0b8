#include "supervisor/audit.h"

#include <nlohmann/json.hpp>

namespace pyplaypen::supervisor {
namespace {

using nlohmann::ordered_json;

constexpr char kPolicyVersion[] = "v3";

ordered_json output_json(const Output& output) {
  return {{"bytes", output.total_bytes}, {"sha256", output.sha256}, {"truncated", output.truncated}};
}

ordered_json limits_json(const Limits& limits) {
  ordered_json json;
  // The texts are numbers already: parsing them keeps 0.5 a fraction and 1073741824 whole.
  for (const std::string_view name : limit_names())
    json[std::string(name)] = ordered_json::parse(limit_text(limits, name));
  return json;
}

ordered_json usage_json(const Usage& usage) {
  return {{"wall_ms", usage.wall_ms},
          {"queue_ms", usage.queue_ms},
          {"cpu_ms", usage.cpu_ms},
          {"max_rss_bytes", usage.max_rss_bytes}};
}

std::string dump(const ordered_json& record) {
  return record.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

std::string audit_record(const Result& result, const Limits& limits, const Enforcement& enforcement) {
  ordered_json artifacts = ordered_json::array();
  for (const Artifact& artifact : result.artifacts)
    artifacts.push_back({{"path", artifact.path}, {"bytes", artifact.bytes}, {"sha256", artifact.sha256}});
  const ordered_json record = {
      {"event", "execution"},
      {"policy_version", kPolicyVersion},
      {"request_id", result.request_id},
      {"status", result.ok() ? "ok" : "error"},
      {"error_type", result.error ? ordered_json(error_type_name(result.error->type)) : ordered_json()},
      {"limits", limits_json(limits)},
      {"enforcement", enforcement},
      {"stdout", output_json(result.stdout_output)},
      {"stderr", output_json(result.stderr_output)},
      {"return_value_bytes", result.return_value.size()},
      {"artifacts", artifacts},
      {"usage", usage_json(result.usage)},
      {"stages",
       {{"queue_ms", result.stages.queue_ms},
        {"dispatch_ms", result.stages.dispatch_ms},
        {"confine_ms", result.stages.confine_ms},
        {"evaluate_ms", result.stages.evaluate_ms},
        {"collect_ms", result.stages.collect_ms},
        {"teardown_ms", result.stages.teardown_ms}}},
  };
  return dump(record);
}

std::string audit_record(const std::vector<std::string>& argv, const ProcessResult& result,
                         const Limits& limits, const Enforcement& enforcement) {
  return dump({
      {"event", "process_execution"},
      {"policy_version", kPolicyVersion},
      {"status", process_status_name(result.status)},
      {"returncode", result.returncode ? ordered_json(*result.returncode) : ordered_json()},
      {"argv", argv},
      {"limits", limits_json(limits)},
      {"enforcement", enforcement},
      {"stdout", output_json(result.stdout_output)},
      {"stderr", output_json(result.stderr_output)},
      {"usage", usage_json(result.usage)},
  });
}

}  // namespace pyplaypen::supervisor
