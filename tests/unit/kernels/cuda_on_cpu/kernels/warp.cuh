// Stands for src/kernels/warp.cuh, whose instructions a CPU has not.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "cuda_on_cpu.hpp"

namespace gemmhoist::kernels {

inline std::uint32_t warp_least(std::uint32_t value) {
  const auto all = cuda_on_cpu::warp_gather(value);
  return *std::min_element(all.begin(), all.end());
}
inline std::uint32_t warp_greatest(std::uint32_t value) {
  const auto all = cuda_on_cpu::warp_gather(value);
  return *std::max_element(all.begin(), all.end());
}
inline std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
inline float float_of(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

}  // namespace gemmhoist::kernels
