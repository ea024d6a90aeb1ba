// Stands for src/kernels/warp.cuh, whose instructions a CPU has not.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "cuda_on_cpu.hpp"

namespace gemmhoist::kernels {

inline std::uint32_t warp_least(std::uint32_t value) {
  return cuda_on_cpu::warp_reduce(value, [](std::uint32_t x, std::uint32_t y) { return std::min(x, y); });
}
inline std::uint32_t warp_greatest(std::uint32_t value) {
  return cuda_on_cpu::warp_reduce(value, [](std::uint32_t x, std::uint32_t y) { return std::max(x, y); });
}
inline std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
inline float float_of(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

}  // namespace gemmhoist::kernels
