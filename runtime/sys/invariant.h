// PYPLAYPEN_INVARIANT: a condition that only our own bug can break. On in release builds, too.
#pragma once

#include <cstdio>
#include <cstdlib>

#define PYPLAYPEN_INVARIANT(condition)                                                        \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      std::fprintf(stderr, "pyplaypen: broken invariant: %s (%s:%d)\n", #condition, __FILE__, \
                   __LINE__);                                                                 \
      std::abort();                                                                           \
    }                                                                                         \
  } while (false)
