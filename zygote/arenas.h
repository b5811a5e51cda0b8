// Where CPython's small objects lie.
#pragma once

namespace pyplaypen::zygote {

// From here on, CPython takes its arenas from memory on 2 MB pages: a fork hands those down in one
// page-table entry instead of 512, and the end of a child has as little to undo. What a child writes to
// is split and copied by 4 KB as ever. Sustained calls: +16 % (measured, bench/). Runs in: zygote,
// before CPython's start.
void take_arenas_from_huge_pages() noexcept;

// New arenas are of ordinary pages again: a child that needs one does not have 2 MB cleared for it.
// Runs in: zygote, when everything is imported.
void take_arenas_from_ordinary_pages() noexcept;

}  // namespace pyplaypen::zygote
