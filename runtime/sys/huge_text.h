// The program's own code on huge pages.
#pragma once

namespace pyplaypen::sys {

// Copies the read-only segments of this executable (code, constants) to anonymous memory on 2 MB pages
// and puts that in their place. A fork then hands the code down in a few page-table entries, while of
// pages of a file none is handed down and each child faults in its own: 50 faults of 3 us for the
// smallest call (measured, bench/). Needs MADV_COLLAPSE (Linux 6.1), transparent huge pages not set to
// `never`, and segments aligned to 2 MB by the linker; does nothing where one of them is missing.
// Runs in: one thread, before it forks. False: nothing was changed.
bool put_text_on_huge_pages() noexcept;

}  // namespace pyplaypen::sys
