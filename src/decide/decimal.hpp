// Numbers as text and back, without libm and whatever the host's locale is. (std::to_chars and
// std::from_chars need libm in libstdc++, for the rounding modes of numbers that a profile never holds.)
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace gemmhoist::decide {

inline constexpr std::size_t kDecimalBytes = 24;  // "1.2345678901234567e-308"

// The fewest digits that read back as the same number; `x` is finite and not negative. The length; 0 where it
// does not fit.
std::size_t write_decimal(double x, std::span<char> out) noexcept;

// "12", "0.4", "1.5e-06": nothing before, nothing behind, no sign in front, finite. False for anything else.
[[nodiscard]] bool read_decimal(std::string_view text, double& x) noexcept;

}  // namespace gemmhoist::decide
