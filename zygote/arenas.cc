#include "zygote/arenas.h"

#include <Python.h>
#include <sys/mman.h>

#include <cstdint>

namespace pyplaypen::zygote {
namespace {

constexpr uintptr_t kHuge = uintptr_t{2} << 20;
constexpr uintptr_t kBlock = 2 * kHuge;  // reserved at a time: a warm interpreter takes 5 to 40 MB

bool on_huge_pages = false;
char* next = nullptr;
char* end = nullptr;

void* map_pages(size_t size) noexcept {
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

bool reserve_block() noexcept {
  auto* const memory = static_cast<char*>(map_pages(kBlock + kHuge));
  if (memory == nullptr) return false;
  const uintptr_t before = (kHuge - reinterpret_cast<uintptr_t>(memory) % kHuge) % kHuge;
  if (before != 0) ::munmap(memory, before);
  next = memory + before;
  end = next + kBlock;
  if (before != kHuge) ::munmap(end, kHuge - before);
  (void)::madvise(next, kBlock, MADV_HUGEPAGE);  // where there are none, ordinary ones do
  return true;
}

// Arenas are 1 MB since CPython 3.10; what is smaller is a thread's stack of frames, and whatever
// else it may be, it is not for a block of arenas.
constexpr size_t kArena = size_t{1} << 20;

void* allocate(void*, size_t size) noexcept {
  if (!on_huge_pages || size != kArena) return map_pages(size);
  if (next == end && !reserve_block()) return nullptr;
  char* const arena = next;
  next += size;
  return arena;
}

void release(void*, void* arena, size_t size) noexcept { ::munmap(arena, size); }

}  // namespace

void take_arenas_from_huge_pages() noexcept {
  on_huge_pages = true;
  PyObjectArenaAllocator allocator{nullptr, allocate, release};
  PyObject_SetArenaAllocator(&allocator);
}

void take_arenas_from_ordinary_pages() noexcept { on_huge_pages = false; }

}  // namespace pyplaypen::zygote
