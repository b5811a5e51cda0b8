// LandlockRuleset -> a ruleset descriptor that a child restricts itself with.
#pragma once

#include <cstdint>

#include "pyplaypen/landlock.h"
#include "runtime/sys/unique_fd.h"

namespace pyplaypen::jail {

// Creates the ruleset in the kernel for a kernel of this ABI. Runs in: parent, before the fork; the
// child then needs one restrict_self on the inherited descriptor (7-11 us instead of 28-40). Throws
// std::runtime_error with a sentence for what the ABI lacks (unless kLeaveOut), sys::Error naming a
// path that cannot be opened. Empty (no descriptor) when nothing would be restricted.
sys::UniqueFd build_ruleset(const LandlockRuleset& ruleset, int abi);

// The LANDLOCK_ACCESS_FS_* rights that count as writing under this ABI: what confine_writes handles.
uint64_t write_rights(int abi);
// The same for reading and executing.
uint64_t read_rights(int abi);

// PR_SET_NO_NEW_PRIVS must be set before, or the caller have CAP_SYS_ADMIN. Async-signal-safe. 0 or errno.
int restrict_self(int ruleset_fd) noexcept;

}  // namespace pyplaypen::jail
