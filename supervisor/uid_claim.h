// Claims a UID of the slots' range for one slot, against every other Sandbox of this host.
#pragma once

#include <cstdint>

#include "runtime/sys/unique_fd.h"

namespace pyplaypen::supervisor {

// The first UID from `first` on that nobody holds, and what holds it: an abstract socket of that
// number's name, gone with its last descriptor, however that ends. Holds within a network namespace;
// containers that share UIDs with each other are given ranges of their own (child_uid).
struct UidClaim {
  uint32_t uid = 0;
  sys::UniqueFd hold;
};

// Throws sys::Error.
UidClaim claim_uid(uint32_t first);

}  // namespace pyplaypen::supervisor
