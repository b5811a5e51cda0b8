// Runs ordinary code ahead of a call, so that its pages and caches are there when the call comes.
#pragma once

#include "runtime/python/captured.h"
#include "runtime/python/extensions.h"

namespace pyplaypen::python {

// Compiles, evaluates, projects and describes small pieces of what calls usually do. What is not
// loaded is not touched; what loaded modules load on first use (pandas does) gets loaded, so run it
// once in the zygote after the preloads, too. Otherwise leaves nothing behind in `__main__`,
// sys.modules, linecache or the random generators, writes to no descriptor, and swallows every
// error. Runs in: child, before settle(); a few ms.
//
// Stops between two pieces as soon as `request_fd` (-1: none) is readable: a request that is there
// gains more from being served.
void warm_up(const Captured& captured, const Extensions& extensions, int request_fd = -1) noexcept;

}  // namespace pyplaypen::python
