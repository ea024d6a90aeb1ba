// Checked and rounded sizes: products of extents are 64-bit and never wrap silently.
#pragma once

#include <cstdint>

namespace gemmhoist {

// False when the product does not fit; the result is then unspecified.
[[nodiscard]] inline bool checked_multiply(std::int64_t x, std::int64_t y, std::int64_t& product) noexcept {
  return !__builtin_mul_overflow(x, y, &product);
}

constexpr std::int64_t divide_up(std::int64_t x, std::int64_t y) noexcept {
  return (x + y - 1) / y;
}
constexpr std::int64_t round_up(std::int64_t x, std::int64_t multiple) noexcept {
  return divide_up(x, multiple) * multiple;
}

}  // namespace gemmhoist
