#include "supervisor/direct_audit.h"

#include <string.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

namespace pyplaypen::supervisor {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPolicyVersion = "v3";

const char* status_word(DirectResult::Status status) {
  switch (status) {
    case DirectResult::Status::kEnded: return "ok";
    case DirectResult::Status::kTimeout: return "timeout";
    case DirectResult::Status::kNotStarted: return "internal";
  }
  return "internal";
}

Json limits_object(const Limits& limits) {
  Json object;
  for (const std::string_view name : limit_names())
    object[std::string(name)] = Json::parse(limit_text(limits, name));
  return object;
}

Json stream_object(const Output& output) {
  Json object{{"bytes", output.total_bytes}, {"truncated", output.truncated}};
  if (!output.sha256.empty()) object["sha256"] = output.sha256;
  return object;
}

}  // namespace

std::string audit_record(const DirectRun& run, const DirectResult& result) {
  const bool ended = result.status == DirectResult::Status::kEnded;
  Json record;
  record["event"] = "process_execution";
  record["policy_version"] = kPolicyVersion;
  record["status"] = status_word(result.status);
  record["returncode"] = nullptr;
  record["signal"] = nullptr;
  if (ended && WIFEXITED(result.wait_status)) record["returncode"] = WEXITSTATUS(result.wait_status);
  if (ended && WIFSIGNALED(result.wait_status)) {
    const int number = WTERMSIG(result.wait_status);
    record["returncode"] = -number;
    record["signal"] = number;
  }
  record["limits"] = limits_object(run.limits);
  record["enforcement"] = direct_enforcement(run.identity, result.namespaces, run.writes, run.landlock_abi);
  record["usage"] = {{"wall_ms", result.usage.wall_ms},
                     {"cpu_ms", result.usage.cpu_ms},
                     {"max_rss_bytes", result.usage.max_rss_bytes}};
  record["stdout"] = stream_object(result.stdout_output);
  record["stderr"] = stream_object(result.stderr_output);
  return record.dump();
}

}  // namespace pyplaypen::supervisor
