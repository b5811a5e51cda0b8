// What /proc says of memory, kB: of this process and of others.
#pragma once

#include <sys/types.h>

namespace pyplaypen::bench {

double own_memory_kb();
// The highest since the last reset.
void reset_own_peak();
double own_peak_kb();

// Of another process: its resident set, and its share of it (PSS: a page that n processes share
// counts 1/n). 0 where we may not look.
double resident_kb(pid_t pid);
double proportional_kb(pid_t pid);
double private_kb(pid_t pid);

}  // namespace pyplaypen::bench
