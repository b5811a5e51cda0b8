#include "runtime/policy/root_rights.h"

#include <linux/capability.h>
#include <unistd.h>

#include "runtime/sys/raw.h"

namespace pyplaypen::policy {
namespace {

struct Right {
  int capability;
  const char* name;
};

constexpr Right kNeeded[] = {{CAP_CHOWN, "CAP_CHOWN"},
                             {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
                             {CAP_FOWNER, "CAP_FOWNER"},
                             {CAP_KILL, "CAP_KILL"}};

}  // namespace

bool can_become_others() {
  return ::geteuid() == 0 && sys::raw::has_capability(CAP_SETUID) && sys::raw::has_capability(CAP_SETGID);
}

std::string missing_rights_over_others() {
  std::string names;
  for (const Right& right : kNeeded)
    if (!sys::raw::has_capability(right.capability)) names.append(names.empty() ? "" : ", ").append(right.name);
  return names;
}

}  // namespace pyplaypen::policy
