#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "pyplaypen/result.h"

namespace pyplaypen {
namespace {

using nlohmann::json;

TEST(ResultJson, HasTheSpecsKeysAndOurs) {
  const json parsed = json::parse(to_json(Result{}));
  for (const char* key : {"status", "return_value", "stdout", "stderr", "truncated", "stdout_sha256",
                          "stderr_sha256", "error", "artifacts", "artifact_root", "usage", "request_id"})
    EXPECT_TRUE(parsed.contains(key)) << key;
  EXPECT_EQ(parsed["status"], "ok");
  EXPECT_TRUE(parsed["error"].is_null());
  EXPECT_TRUE(parsed["artifact_root"].is_null());
  EXPECT_EQ(parsed["truncated"], json::parse(R"({"stdout":false,"stderr":false})"));
}

TEST(ResultJson, TheValueIsSplicedAsItCame) {
  Result result;
  result.return_value = std::string(6000, '7');
  EXPECT_NE(to_json(result).find("\"return_value\":" + result.return_value + ","), std::string::npos);
}

TEST(ResultJson, BytesThatAreNoUtf8BecomeReplacementCharacters) {
  Result result;
  result.stdout_output.bytes = "\xff" "A";
  EXPECT_EQ(json::parse(to_json(result))["stdout"], "\xef\xbf\xbd" "A");
}

TEST(ResultJson, AnErrorHasDetailsOnlyWhereThereAreSome) {
  Result result;
  result.error.emplace();
  result.error->type = ErrorType::kCpuLimit;
  result.error->message = "m";
  EXPECT_EQ(json::parse(to_json(result))["error"], json::parse(R"({"type":"cpu_limit","message":"m"})"));
  result.error->line = 2;
  result.error->exit_code = 3;
  result.error->traceback = "t";
  EXPECT_EQ(json::parse(to_json(result))["error"]["details"],
            json::parse(R"({"traceback":"t","line":2,"exit_code":3})"));
}

TEST(ResultJson, EveryErrorTypeHasItsName) {
  EXPECT_EQ(error_type_name(ErrorType::kSyntax), "syntax");
  EXPECT_EQ(error_type_name(ErrorType::kOpenFilesLimit), "open_files_limit");
  EXPECT_EQ(error_type_name(ErrorType::kInternal), "internal");
}

}  // namespace
}  // namespace pyplaypen
