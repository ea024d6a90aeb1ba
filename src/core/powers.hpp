// Powers and exponents without libm, whose loading would be most of what a preload costs a process that has
// no use for it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace gemmhoist {

// The e of 2^e <= x < 2^(e+1), for positive normal numbers.
constexpr int exponent_of(double x) noexcept {
  return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52) - 1023;
}

constexpr double whole_power(double base, int exponent) noexcept {
  double power = 1;
  for (; exponent > 0; --exponent) power *= base;
  return power;
}

// base^fraction for a fraction in [0, 1), by its binary digits, a square root (an instruction) for each.
// Twelve digits: the result is within 2^-12 of log2(base) octaves.
inline double root_power(double base, double fraction) noexcept {
  double power = 1;
  for (int digit = 0; digit < 12 && fraction > 0; ++digit) {
    base = std::sqrt(base);
    fraction *= 2;
    if (fraction >= 1) {
      power *= base;
      fraction -= 1;
    }
  }
  return power;
}

}  // namespace gemmhoist
