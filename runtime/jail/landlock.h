// LandlockRuleset -> a ruleset descriptor that a child restricts itself with.
#pragma once

#include <cstdint>

#include "pyplaypen/landlock.h"
#include "runtime/sys/unique_fd.h"

namespace pyplaypen::jail {

// Creates the ruleset in the kernel, asking for no more than this ABI has: pass landlock_abi(), or
// less to act as an older kernel does. Runs in: parent, before the fork; the child then needs one
// restrict_self on the inherited descriptor (7-11 us instead of 28-40). Throws std::runtime_error with
// a sentence for what the ABI lacks (unless kLeaveOut), sys::Error naming a path that cannot be
// opened. Empty (no descriptor) when nothing would be restricted. A missing TRUNCATE right (ABI 1 and
// 2) is not refused: callers tell of it as "hard_content_except_truncate".
sys::UniqueFd build_ruleset(const LandlockRuleset& ruleset, int abi);

// For a process that scopes its own signals before it makes restricted children: SCOPE_SIGNAL alone.
// `confines_writes` tells whether a child will add a write set: ABI 6 denies renames across
// directories in every layer of a domain that handles files anywhere (ABI 7 no longer does), so that
// this layer then allows them again. Empty below ABI 6. Throws sys::Error.
sys::UniqueFd build_signal_scope(int abi, bool confines_writes);

// The LANDLOCK_ACCESS_FS_* rights that count as writing under this ABI: what confine_writes handles.
uint64_t write_rights(int abi) noexcept;
// Reading files and listing directories; executing. The same under every ABI.
uint64_t read_rights() noexcept;
uint64_t execute_rights() noexcept;

// Creates a ruleset that handles write_rights(abi) and allows them beneath `paths`: 0 and the
// descriptor in *fd, or an errno. Async-signal-safe, no allocation.
int create_write_ruleset(const char* const* paths, size_t count, int abi, int* fd) noexcept;

// PR_SET_NO_NEW_PRIVS must be set before, or the caller have CAP_SYS_ADMIN. Async-signal-safe. 0 or errno.
int restrict_self(int ruleset_fd) noexcept;

}  // namespace pyplaypen::jail
