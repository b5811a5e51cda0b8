// Address space held back for the time when a call has used up all it may have.
#pragma once

#include <cstddef>

namespace pyplaypen::python {

// Untouched, so it costs no memory; mapped in the zygote, so it counts as the interpreter's and not
// as the call's.
class MemoryReserve {
 public:
  static constexpr size_t kBytes = size_t{8} << 20;

  MemoryReserve();
  MemoryReserve(MemoryReserve&& other) noexcept;
  MemoryReserve& operator=(MemoryReserve&& other) noexcept;
  ~MemoryReserve() { release(); }

  // Gives the address space back to this process. For good.
  void release() noexcept;

 private:
  void* start_ = nullptr;
};

}  // namespace pyplaypen::python
