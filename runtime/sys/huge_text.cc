#include "runtime/sys/huge_text.h"

#include <link.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>

namespace pyplaypen::sys {
namespace {

constexpr uintptr_t kHuge = uintptr_t{2} << 20;
constexpr size_t kWorthIt = size_t{1} << 20;
#ifndef MADV_COLLAPSE
constexpr int MADV_COLLAPSE = 25;  // Linux 6.1; not in glibc 2.36's headers
#endif

constexpr uintptr_t round_up(uintptr_t value) { return (value + kHuge - 1) & ~(kHuge - 1); }

// Both a multiple of kHuge; nothing else is mapped there but the segment.
struct Segment {
  uintptr_t start;
  size_t used;
  size_t length;
  int protection;
};

bool replace(const Segment& segment) noexcept {
  void* const room = ::mmap(nullptr, segment.length + kHuge, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(room);
  auto* const copy = reinterpret_cast<char*>(round_up(begin));
  const uintptr_t copy_end = round_up(begin) + segment.length;
  bool moved = false;
  if (::madvise(copy, segment.length, MADV_HUGEPAGE) == 0) {
    std::memcpy(copy, reinterpret_cast<const void*>(segment.start), segment.used);
    __builtin___clear_cache(copy, copy + segment.used);  // for aarch64, before it is run
    moved = ::madvise(copy, segment.length, MADV_COLLAPSE) == 0 &&
            ::mprotect(copy, segment.length, segment.protection) == 0 &&
            ::mremap(copy, segment.length, segment.length, MREMAP_MAYMOVE | MREMAP_FIXED,
                     reinterpret_cast<void*>(segment.start)) != MAP_FAILED;
  }
  if (!moved) ::munmap(copy, segment.length);
  if (round_up(begin) > begin) ::munmap(room, round_up(begin) - begin);
  if (begin + segment.length + kHuge > copy_end)
    ::munmap(reinterpret_cast<void*>(copy_end), begin + segment.length + kHuge - copy_end);
  return moved;
}

// The executable is the first object (man 3 dl_iterate_phdr).
int replace_all(dl_phdr_info* info, size_t, void* any) noexcept {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) != 0 || header.p_memsz < kWorthIt) continue;
    const uintptr_t start = info->dlpi_addr + header.p_vaddr;
    const uintptr_t end = round_up(start + header.p_memsz);
    if (start % kHuge != 0) continue;
    bool alone = true;
    for (int j = 0; j < info->dlpi_phnum; ++j) {
      const ElfW(Phdr)& other = info->dlpi_phdr[j];
      const uintptr_t other_start = info->dlpi_addr + other.p_vaddr;
      if (j != i && other.p_type == PT_LOAD && other_start >= start && other_start < end) alone = false;
    }
    const int protection = PROT_READ | ((header.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
    if (alone && replace({start, header.p_memsz, end - start, protection})) *static_cast<bool*>(any) = true;
  }
  return 1;
}

}  // namespace

bool put_text_on_huge_pages() noexcept {
  bool any = false;
  ::dl_iterate_phdr(replace_all, &any);
  return any;
}

}  // namespace pyplaypen::sys
