// Which pairs of panels six products of bfloat16 pieces make as well as fp32 does.
//
// An fp32 value of 24 bits is the sum of three bfloat16 pieces of 8 bits, exactly, as long as the last bit of
// the last piece is no smaller than the least subnormal bfloat16, 2^-133: magnitudes from 2^-110 on. The
// largest piece is rounded to nearest, so values from 0x7F7F8000 on have none. The product of two pieces ends
// at 2^(e + f - 30) for values of 2^e and 2^f; where that is under 2^-149, bits are lost that an FMA keeps.
// And no sum over k may pass the largest float on its way, be the true result finite or not.
#pragma once

#include <cstdint>

#include "core/kernel_descriptor.hpp"
#include "kernels/tile_order.hpp"

namespace gemmhoist::kernels {

inline constexpr MagnitudeRange kNoMagnitude{0xFFFFFFFFu, 0};

// Of a magnitude's bits; subnormals count as the least normal ones.
GEMMHOIST_HOST_DEVICE constexpr int exponent_of(std::uint32_t magnitude) noexcept {
  const int biased = static_cast<int>(magnitude >> 23);
  return (biased == 0 ? 1 : biased) - 127;
}

GEMMHOIST_HOST_DEVICE constexpr bool bf16x6_in_range(MagnitudeRange a, MagnitudeRange b,
                                                     std::int32_t k) noexcept {
  constexpr std::uint32_t kRoundsToInfinity = 0x7F7F8000u;
  constexpr int kLeastExactExponent = -110;
  constexpr int kLeastExactPair = -149 + 30;
  if (a.greatest >= kRoundsToInfinity || b.greatest >= kRoundsToInfinity) return false;
  if (a.greatest == 0 || b.greatest == 0) return true;
  int log2_k = 0;
  while (log2_k < 31 && (std::int64_t{1} << log2_k) < k) ++log2_k;
  // A value is under 2^(e + 1), its pieces' magnitudes sum to less than 2^(e + 1) (1 + 2^-7).
  if (exponent_of(a.greatest) + exponent_of(b.greatest) + 3 + log2_k > 127) return false;
  const int e = exponent_of(a.least), f = exponent_of(b.least);
  return e >= kLeastExactExponent && f >= kLeastExactExponent && e + f >= kLeastExactPair;
}

}  // namespace gemmhoist::kernels
