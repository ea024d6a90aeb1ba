// Stands for src/kernels/bf16_pieces.cuh, whose PTX a CPU has not.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace gemmhoist::kernels {

inline std::uint32_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::isnan(value) ? 0x7FFFu : (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
}
inline std::uint32_t bf16_pair(float low, float high) {
  return bf16_of(low) | bf16_of(high) << 16;
}

}  // namespace gemmhoist::kernels
