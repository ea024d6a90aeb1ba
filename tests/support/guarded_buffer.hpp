// Guarded buffer: floats that end exactly at a page without access, and begin after one as closely as their
// alignment allows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gemmhoist::test {

class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  explicit GuardedBuffer(std::size_t floats);
  ~GuardedBuffer();
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;

  float* data() const { return data_; }
  std::size_t size() const { return floats_; }
  float& operator[](std::size_t i) const { return data_[i]; }

 private:
  std::byte* mapping_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  float* data_ = nullptr;
  std::size_t floats_ = 0;
};

}  // namespace gemmhoist::test
