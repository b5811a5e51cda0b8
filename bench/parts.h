// The pieces of our own that every call goes through, by themselves.
#pragma once

#include "bench/item.h"

namespace pyplaypen::bench {

void add_parts(Plan& plan, const Mode& mode);

}  // namespace pyplaypen::bench
