// A call's private TMPDIR.
#pragma once

#include <optional>
#include <string>

#include "runtime/jail/launch.h"

namespace pyplaypen::supervisor {

// A fresh directory of mode 0700 that belongs to the call's user; removed, with whatever is in it,
// when destroyed. Nothing may be writing into it any more by then.
class PrivateTmp {
 public:
  // In `parent`, or in /tmp when that is empty or no absolute path. Throws sys::Error naming it.
  PrivateTmp(const std::string& parent, const std::optional<jail::Identity>& owner);
  PrivateTmp(const PrivateTmp&) = delete;
  PrivateTmp& operator=(const PrivateTmp&) = delete;
  ~PrivateTmp();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace pyplaypen::supervisor
