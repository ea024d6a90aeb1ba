// BLAS rules: what a caller's raw arguments mean, whether they are legal, and the canonical call they make.
#pragma once

#include <cstdint>

#include "core/gemm_call.hpp"

namespace gemmhoist {

enum class CallClass : std::uint8_t {
  illegal,  // an argument that BLAS reports through xerbla, or a spelling that we do not know
  trivial,  // m, n or k is zero, or alpha is zero: O(mn) work at most, A and B are not read
  product,  // everything else
};

// Raw arguments of the C interface, widened. order: 101 row-major, 102 column-major; trans: 111 no, 112 yes,
// 113 conjugate-transpose (a transpose, for real data).
struct CblasArguments {
  int order, trans_a, trans_b;
  std::int64_t m, n, k;
  float alpha;
  const float* a;
  std::int64_t lda;
  const float* b;
  std::int64_t ldb;
  float beta;
  float* c;
  std::int64_t ldc;
};

// Raw arguments of the Fortran interface: trans is the first character as it came, any case.
struct FortranArguments {
  char trans_a, trans_b;
  std::int64_t m, n, k;
  float alpha;
  const float* a;
  std::int64_t lda;
  const float* b;
  std::int64_t ldb;
  float beta;
  float* c;
  std::int64_t ldc;
};

// Classifies and, unless illegal, fills `call`. Never reads a matrix. NaN in alpha is no zero.
CallClass normalise(const CblasArguments& raw, GemmCall& call) noexcept;
CallClass normalise(const FortranArguments& raw, GemmCall& call) noexcept;

}  // namespace gemmhoist
