// BLAS rules: what a caller's raw arguments mean, whether they are legal, and the canonical call they make.
#pragma once

#include <bit>
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

enum class Letter : std::uint8_t { no, yes, unknown };

// OpenBLAS also knows 'R' and 114 (conjugate, not transposed); the reference reports both. We leave them to
// the provider, whichever it is.
constexpr Letter letter_of(char c) noexcept {
  switch (c) {
    case 'N':
    case 'n':
      return Letter::no;
    case 'T':
    case 't':
    case 'C':
    case 'c':
      return Letter::yes;
    default:
      return Letter::unknown;
  }
}

constexpr Letter letter_of(int cblas_transpose) noexcept {
  switch (cblas_transpose) {
    case 111:
      return Letter::no;
    case 112:
    case 113:
      return Letter::yes;
    default:
      return Letter::unknown;
  }
}

// The rules of the reference xGEMM, on column-major arguments. OpenBLAS compares leading dimensions with the
// rows themselves, the reference with max(1, rows): the two differ for empty matrices only, which no route
// but the provider ever sees. Here, and by value, for the entries' sake: a small product is classified in
// registers.
constexpr CallClass class_of(Letter trans_a, Letter trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                             float alpha, std::int64_t lda, std::int64_t ldb, std::int64_t ldc) noexcept {
  if (trans_a == Letter::unknown || trans_b == Letter::unknown) return CallClass::illegal;
  if (m < 0 || n < 0 || k < 0) return CallClass::illegal;
  const std::int64_t rows_a = trans_a == Letter::no ? m : k;
  const std::int64_t rows_b = trans_b == Letter::no ? k : n;
  const auto too_short = [](std::int64_t ld, std::int64_t rows) { return ld < (rows > 1 ? rows : 1); };
  if (too_short(lda, rows_a) || too_short(ldb, rows_b) || too_short(ldc, m)) return CallClass::illegal;
  // NaN is not zero: a product, whose every element is NaN. By its bits, since comparing raises flags for
  // signalling NaN and subnormals, which are the host's.
  const bool alpha_zero = (std::bit_cast<std::uint32_t>(alpha) << 1) == 0;
  return m == 0 || n == 0 || k == 0 || alpha_zero ? CallClass::trivial : CallClass::product;
}

// Classifies and, unless illegal, fills `call`. Never reads a matrix. NaN in alpha is no zero.
CallClass normalise(const CblasArguments& raw, GemmCall& call) noexcept;
CallClass normalise(const FortranArguments& raw, GemmCall& call) noexcept;

}  // namespace gemmhoist
