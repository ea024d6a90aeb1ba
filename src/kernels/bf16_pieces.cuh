// Two fp32 values as pieces of bfloat16, two to a word (sm_80 and later).
#pragma once

#include <cstdint>

namespace gemmhoist::kernels {

// Rounds to nearest, ties to even; `low` takes the low half.
__device__ inline std::uint32_t bf16_pair(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

__device__ inline std::uint32_t bits_of(float value) {
  return __float_as_uint(value);
}
__device__ inline float float_of(std::uint32_t bits) {
  return __uint_as_float(bits);
}

// Of all lanes of a warp.
__device__ inline std::uint32_t warp_least(std::uint32_t value) {
  return __reduce_min_sync(0xFFFFFFFFu, value);
}
__device__ inline std::uint32_t warp_greatest(std::uint32_t value) {
  return __reduce_max_sync(0xFFFFFFFFu, value);
}

}  // namespace gemmhoist::kernels
