#include "runtime/python/memory_reserve.h"

#include <sys/mman.h>

#include <utility>

namespace pyplaypen::python {

MemoryReserve::MemoryReserve() {
  void* start =
      ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  // Without it a report may come out shorter; nothing else depends on it.
  if (start != MAP_FAILED) start_ = start;
}

MemoryReserve::MemoryReserve(MemoryReserve&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)) {}

MemoryReserve& MemoryReserve::operator=(MemoryReserve&& other) noexcept {
  std::swap(start_, other.start_);
  return *this;
}

void MemoryReserve::release() noexcept {
  if (start_ != nullptr) ::munmap(std::exchange(start_, nullptr), kBytes);
}

}  // namespace pyplaypen::python
