// Whom the kernel ends first when memory runs out (man 5 proc, oom_score_adj): calls, then keepers and
// the zygote, then the host, which stays as it was.
#pragma once

#include <string>

#include "runtime/sys/unique_fd.h"

namespace pyplaypen::zygote {

// Runs in: zygote, at its start; keepers inherit it.
void come_after_calls();

// Runs in: keeper. What it forks between first() and not_first() comes first: two writes there instead of a
// file to be opened in each child.
class OomOrder {
 public:
  // While the process is dumpable; the file is root's otherwise.
  OomOrder();
  void first() const;
  void not_first() const;

 private:
  sys::UniqueFd file_;  // empty where /proc is missing: then nothing is preferred
  std::string own_;
};

}  // namespace pyplaypen::zygote
