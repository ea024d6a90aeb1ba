#include "families.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace gemmhoist::gpu_kernels {
namespace {

// Exponent of two for one element.
int exponent(Family family, Operand operand, std::int64_t k, std::mt19937& random) {
  switch (family) {
    case Family::wide_exponents:
      return std::uniform_int_distribution<int>(-30, 30)(random);
    case Family::subnormal_operands:
      return operand == Operand::a ? -127 : 20;
    case Family::subnormal_results:
      return -70;
    case Family::near_overflow:
      // k products below 2^(2e), and twice that with alpha and C: below 2^126.
      return (124 - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(k)))) / 2;
    default:
      return 0;
  }
}

}  // namespace

const char* to_string(Family family) {
  switch (family) {
    case Family::signed_unit:
      return "U(-1,1)";
    case Family::unit:
      return "U(0,1)";
    case Family::wide_exponents:
      return "U(-1,1) x 2^(-30..30)";
    case Family::subnormal_operands:
      return "subnormal operands";
    case Family::subnormal_results:
      return "subnormal results";
    case Family::near_overflow:
      return "near overflow";
    case Family::infinite:
      return "one Inf";
    case Family::not_a_number:
      return "one NaN";
  }
  return "?";
}

void fill_panel(Family family, Operand operand, const PanelShape& shape, std::span<float> panel,
                std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(family == Family::unit ? 0.0f : -1.0f, 1.0f);
  std::fill(panel.begin(), panel.end(), std::numeric_limits<float>::quiet_NaN());
  for (std::int64_t p = 0; p < shape.k; ++p) {
    float* row = panel.data() + p * shape.ld;
    for (std::int64_t i = 0; i < shape.extent; ++i)
      row[i] =
          p < shape.real_k ? std::ldexp(uniform(random), exponent(family, operand, shape.k, random)) : 0.0f;
  }
  const std::int64_t one = shape.extent / 2 + shape.real_k / 2 * shape.ld;
  if (family == Family::infinite && operand == Operand::a)
    panel[static_cast<std::size_t>(one)] = std::numeric_limits<float>::infinity();
  if (family == Family::not_a_number && operand == Operand::b)
    panel[static_cast<std::size_t>(one)] = std::numeric_limits<float>::quiet_NaN();
}

}  // namespace gemmhoist::gpu_kernels
