#include "zygote/arenas.h"

#include <Python.h>
#include <sys/mman.h>

#include "runtime/sys/huge_pages.h"

namespace pyplaypen::zygote {
namespace {

// Since CPython 3.10. What is smaller is a thread's stack of frames.
constexpr size_t kArena = size_t{1} << 20;
constexpr size_t kBlock = 2 * sys::kHugePage;  // reserved at a time: a warm interpreter takes 5 to 40 MB

bool on_huge_pages = false;
char* next = nullptr;
char* end = nullptr;

void* allocate(void*, size_t size) noexcept {
  if (!on_huge_pages || size != kArena) {
    void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
  }
  if (next == end) {
    next = sys::map_huge_pages(kBlock);
    end = next == nullptr ? nullptr : next + kBlock;
    if (next == nullptr) return nullptr;
  }
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
