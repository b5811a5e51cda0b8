#include "runtime/sys/huge_pages.h"

#include <link.h>
#include <sys/mman.h>

#include <cstring>

namespace pyplaypen::sys {
namespace {

constexpr size_t kWorthIt = size_t{1} << 20;
#ifndef MADV_COLLAPSE
constexpr int MADV_COLLAPSE = 25;  // Linux 6.1; not in glibc 2.36's headers
#endif

constexpr size_t round_up(size_t size) { return (size + kHugePage - 1) / kHugePage * kHugePage; }

// Nothing else lies in the pages that it begins, up to their end.
struct Segment {
  char* start;  // on a boundary of kHugePage
  size_t size;
  int protection;
};

bool replace(const Segment& segment) noexcept {
  const size_t length = round_up(segment.size);
  char* const copy = map_huge_pages(length);
  if (copy == nullptr) return false;
  std::memcpy(copy, segment.start, segment.size);
  __builtin___clear_cache(copy, copy + segment.size);  // for aarch64, before it is run
  if (::madvise(copy, length, MADV_COLLAPSE) == 0 && ::mprotect(copy, length, segment.protection) == 0 &&
      ::mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, segment.start) != MAP_FAILED)
    return true;
  ::munmap(copy, length);
  return false;
}

bool is_alone(const dl_phdr_info& info, const ElfW(Phdr) & segment) noexcept {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& other = info.dlpi_phdr[i];
    if (other.p_type == PT_LOAD && other.p_vaddr > segment.p_vaddr &&
        other.p_vaddr < segment.p_vaddr + round_up(segment.p_memsz))
      return false;
  }
  return true;
}

// The executable is the first object (man 3 dl_iterate_phdr).
int replace_all(dl_phdr_info* info, size_t, void* any) noexcept {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + header.p_vaddr;
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) != 0 || header.p_memsz < kWorthIt ||
        start % kHugePage != 0 || !is_alone(*info, header))
      continue;
    auto* const at = reinterpret_cast<char*>(start);  // NOLINT(performance-no-int-to-ptr): the loader's form
    const int protection = PROT_READ | ((header.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
    if (replace({at, header.p_memsz, protection})) *static_cast<bool*>(any) = true;
  }
  return 1;
}

}  // namespace

char* map_huge_pages(size_t size) noexcept {
  void* const memory =
      ::mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  const uintptr_t before = (kHugePage - reinterpret_cast<uintptr_t>(memory) % kHugePage) % kHugePage;
  char* const start = static_cast<char*>(memory) + before;
  if (before != 0) ::munmap(memory, before);
  ::munmap(start + size, kHugePage - before);
  (void)::madvise(start, size, MADV_HUGEPAGE);  // where there are none, ordinary ones do
  return start;
}

bool put_code_on_huge_pages() noexcept {
  bool any = false;
  ::dl_iterate_phdr(replace_all, &any);
  return any;
}

}  // namespace pyplaypen::sys
