// What the lanes of a warp find together (sm_80 and later), and bit patterns of floats.
#pragma once

#include <cstdint>

namespace gemmhoist::kernels {

__device__ inline std::uint32_t warp_least(std::uint32_t value) {
  return __reduce_min_sync(0xFFFFFFFFu, value);
}
__device__ inline std::uint32_t warp_greatest(std::uint32_t value) {
  return __reduce_max_sync(0xFFFFFFFFu, value);
}

__device__ inline std::uint32_t bits_of(float value) {
  return __float_as_uint(value);
}
__device__ inline float float_of(std::uint32_t bits) {
  return __uint_as_float(bits);
}

}  // namespace gemmhoist::kernels
