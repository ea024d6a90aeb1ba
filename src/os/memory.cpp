#include <sys/mman.h>

#include <cstdint>

#include "core/checked.hpp"
#include "os/errno_guard.hpp"
#include "os/os.hpp"

namespace gemmhoist::os {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

bool rounded(std::size_t bytes, std::size_t& whole) noexcept {
  if (bytes == 0 || bytes > (std::size_t{1} << 60)) return false;
  whole = static_cast<std::size_t>(round_up(static_cast<std::int64_t>(bytes), kHugePage));
  return true;
}

}  // namespace

// mmap aligns to 4 KiB only: one huge page more is mapped and both ends are cut off. Nothing is touched, so
// that the pages come to the node of whoever writes them first.
void* map_arena(std::size_t bytes) noexcept {
  const ErrnoGuard keep_errno;
  std::size_t whole = 0;
  if (!rounded(bytes, whole)) return nullptr;
  void* mapped = mmap(nullptr, whole + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped);
  const std::size_t head = (kHugePage - begin % kHugePage) % kHugePage;
  char* arena = static_cast<char*>(mapped) + head;
  if (head != 0) munmap(mapped, head);
  munmap(arena + whole, kHugePage - head);
  madvise(arena, whole, MADV_HUGEPAGE);  // fails where the kernel has no huge pages: small ones then
  // A child that wrote to an inherited page would make the parent copy pages that the device is reading.
  if (madvise(arena, whole, MADV_DONTFORK) != 0) {
    munmap(arena, whole);
    return nullptr;
  }
  return arena;
}

void unmap(void* memory, std::size_t bytes) noexcept {
  const ErrnoGuard keep_errno;
  std::size_t whole = 0;
  if (memory != nullptr && rounded(bytes, whole)) munmap(memory, whole);
}

}  // namespace gemmhoist::os
