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

}  // namespace gemmhoist::kernels
