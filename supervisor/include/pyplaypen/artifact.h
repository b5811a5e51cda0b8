// A file that a call left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pyplaypen {

// `path` is relative to the result's artifact_root, with '/' between its components; `name` is its
// last component. Both are valid UTF-8: a byte that is not is written as \xNN, and then the exact
// bytes stand beside it as base64, and only then.
struct Artifact {
  std::string path;
  std::string name;
  uint64_t bytes = 0;
  std::string mime_type;  // by the extension of the name
  std::string sha256;     // empty until asked for: the audit record has it
  std::optional<std::string> path_bytes_base64;
  std::optional<std::string> name_bytes_base64;

  bool operator==(const Artifact&) const = default;
};

}  // namespace pyplaypen
