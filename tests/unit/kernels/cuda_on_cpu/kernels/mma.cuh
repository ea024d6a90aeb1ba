// Stands for src/kernels/mma.cuh, whose PTX a CPU has not.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "cuda_on_cpu.hpp"

namespace gemmhoist::kernels {

inline void ldmatrix_x4(std::uint32_t (&word)[4], const void* row) {
  const auto rows = cuda_on_cpu::warp_gather(row);
  const std::size_t lane = threadIdx.x % 32;
  for (std::size_t matrix = 0; matrix < 4; ++matrix)
    std::memcpy(&word[matrix], static_cast<const char*>(rows[matrix * 8 + lane / 4]) + lane % 4 * 4, 4);
}

namespace mma_on_cpu {

// Element `at` of a run of words.
inline double bf16(const std::uint32_t word, int half) {
  return std::bit_cast<float>(half == 0 ? word << 16 : word & 0xFFFF0000u);
}
inline double tf32(const std::uint32_t word, int) {
  return std::bit_cast<float>(word & ~0x1FFFu);
}

struct Operands {
  std::uint32_t a[4], b[2];
};

template <int in_a_word, typename Value>
void multiply(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t* b, const Value& value) {
  const auto all = cuda_on_cpu::warp_gather(Operands{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}});
  const std::size_t lane = threadIdx.x % 32;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t row = lane / 4 + i / 2 * 8, col = lane % 4 * 2 + i % 2;
    double sum = d[i];
    for (std::size_t word = 0; word < 8; ++word)  // of 32 bytes of k
      for (int part = 0; part < in_a_word; ++part)
        sum += value(all[row % 8 * 4 + word % 4].a[row / 8 + word / 4 * 2], part) *
               value(all[col * 4 + word % 4].b[word / 4], part);
    d[i] = static_cast<float>(sum);
  }
}

}  // namespace mma_on_cpu

inline void mma_bf16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t* b) {
  mma_on_cpu::multiply<2>(d, a, b, mma_on_cpu::bf16);
}
inline void mma_tf32(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t* b) {
  mma_on_cpu::multiply<1>(d, a, b, mma_on_cpu::tf32);
}

}  // namespace gemmhoist::kernels
