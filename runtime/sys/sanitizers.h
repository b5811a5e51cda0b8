// What AddressSanitizer has to be told; nothing in a build without it.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#endif

namespace pyplaypen::sys {

// Memory that becomes a stack may have been one before, of a process that ended without returning from
// its functions: what was poisoned for them is not any more.
inline void tell_of_new_stack([[maybe_unused]] void* base, [[maybe_unused]] size_t size) noexcept {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(base, size);
#endif
}

// Never to be freed, since a process that shares our memory may still use it.
inline void tell_of_leak([[maybe_unused]] const void* object) noexcept {
#if defined(__SANITIZE_ADDRESS__)
  __lsan_ignore_object(object);
#endif
}

}  // namespace pyplaypen::sys
