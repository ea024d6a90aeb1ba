#include "support/guarded_buffer.hpp"

#include <sys/mman.h>

#include <new>
#include <utility>

namespace gemmhoist::test {
namespace {
constexpr std::size_t kPage = 4096;
}

GuardedBuffer::GuardedBuffer(std::size_t floats) : floats_(floats) {
  const std::size_t bytes = (floats * sizeof(float) + kPage - 1) / kPage * kPage;
  mapped_bytes_ = bytes + 2 * kPage;
  void* mapping = mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<std::byte*>(mapping);
  if (bytes > 0 && mprotect(mapping_ + kPage, bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  data_ = reinterpret_cast<float*>(mapping_ + kPage + bytes) - floats;
}

GuardedBuffer::~GuardedBuffer() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept {
  *this = std::move(other);
}

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(data_, other.data_);
  std::swap(floats_, other.floats_);
  return *this;
}

}  // namespace gemmhoist::test
