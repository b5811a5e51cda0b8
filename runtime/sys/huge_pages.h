// Memory on huge pages: what a fork hands down in one page-table entry instead of 512.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pyplaypen::sys {

inline constexpr uintptr_t kHugePage = uintptr_t{2} << 20;

// Private, anonymous, writable memory that starts on a boundary of 2 MB and gets pages of that size
// where transparent huge pages are not set to `never`, else ordinary ones. `size`: a multiple of
// kHugePage. Null when there is none.
char* map_huge_pages(size_t size) noexcept;

// Copies the read-only segments of this executable (code, constants) to huge pages and puts those in
// their place. Of pages of a file a fork hands none down: each child faults in its own, 50 of them at
// 3 us for the smallest call (measured, bench/). Needs MADV_COLLAPSE (Linux 6.1), which tells whether
// the pages are huge, and segments aligned to 2 MB by the linker; does nothing where one of them is
// missing. Runs in: one thread, before it forks. False: nothing was changed.
bool put_code_on_huge_pages() noexcept;

}  // namespace pyplaypen::sys
