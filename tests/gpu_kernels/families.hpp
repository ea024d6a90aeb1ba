// Families of operands: what a kernel must get right beside numbers of ordinary size.
#pragma once

#include <cstdint>
#include <random>
#include <span>

namespace gemmhoist::gpu_kernels {

enum class Family : std::uint8_t {
  signed_unit,         // U(-1, 1)
  unit,                // U(0, 1): no cancellation, errors of one sign
  wide_exponents,      // U(-1, 1) x 2^(-30..30), each element its own
  subnormal_operands,  // A subnormal, B large enough for normal results
  subnormal_results,   // normal operands whose products are subnormal
  near_overflow,       // sums that come within some bits of the largest float, none that pass it
  infinite,            // U(-1, 1), one Inf in A
  not_a_number,        // U(-1, 1), one NaN in B
};
inline constexpr Family kFamilies[] = {
    Family::signed_unit,       Family::unit,          Family::wide_exponents, Family::subnormal_operands,
    Family::subnormal_results, Family::near_overflow, Family::infinite,       Family::not_a_number,
};
const char* to_string(Family family);

// K-outer panels: for each p < k the elements i < extent at i + p ld. What lies between extent and ld, which
// a kernel may read but not use, becomes NaN; rows from `real_k` on, the padding of k, become zero.
struct PanelShape {
  std::int64_t extent, ld, k, real_k;
};
enum class Operand : std::uint8_t { a, b };
void fill_panel(Family family, Operand operand, const PanelShape& shape, std::span<float> panel,
                std::mt19937& random);

}  // namespace gemmhoist::gpu_kernels
