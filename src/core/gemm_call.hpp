// GemmCall: one canonical matrix product, C = alpha op(A) op(B) + beta C.
#pragma once

#include <cstdint>

namespace gemmhoist {

enum class Transpose : std::uint8_t { no, yes };

constexpr char to_char(Transpose t) noexcept {
  return t == Transpose::no ? 'N' : 'T';
}

// Column-major. op(A) is m x k, op(B) is k x n, C is m x n; leading dimensions in elements.
// Stored A is m x k (no) or k x m (yes); stored B is k x n (no) or n x k (yes).
// A row-major call arrives here with A and B (and m and n) exchanged: see gemm_rules.hpp.
struct GemmCall {
  Transpose trans_a = Transpose::no;
  Transpose trans_b = Transpose::no;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  float alpha = 0;
  const float* a = nullptr;
  std::int64_t lda = 0;
  const float* b = nullptr;
  std::int64_t ldb = 0;
  float beta = 0;
  float* c = nullptr;
  std::int64_t ldc = 0;

  double flops() const noexcept {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

}  // namespace gemmhoist
