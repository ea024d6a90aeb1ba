#include "core/gemm_rules.hpp"

#include <utility>

namespace gemmhoist {

namespace {

enum class Letter : std::uint8_t { no, yes, unknown };

// OpenBLAS also knows 'R' and 114 (conjugate, not transposed); the reference reports both. We leave them to
// the provider, whichever it is.
Letter letter_of(char c) noexcept {
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

Letter letter_of(int cblas_transpose) noexcept {
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
// but the provider ever sees.
CallClass classify(Letter trans_a, Letter trans_b, GemmCall& call) noexcept {
  if (trans_a == Letter::unknown || trans_b == Letter::unknown) return CallClass::illegal;
  if (call.m < 0 || call.n < 0 || call.k < 0) return CallClass::illegal;
  call.trans_a = trans_a == Letter::no ? Transpose::no : Transpose::yes;
  call.trans_b = trans_b == Letter::no ? Transpose::no : Transpose::yes;
  const std::int64_t rows_a = call.trans_a == Transpose::no ? call.m : call.k;
  const std::int64_t rows_b = call.trans_b == Transpose::no ? call.k : call.n;
  const auto too_short = [](std::int64_t ld, std::int64_t rows) { return ld < (rows > 1 ? rows : 1); };
  if (too_short(call.lda, rows_a) || too_short(call.ldb, rows_b) || too_short(call.ldc, call.m)) {
    return CallClass::illegal;
  }
  // NaN compares unequal to zero: a product, whose every element is NaN.
  if (call.m == 0 || call.n == 0 || call.k == 0 || call.alpha == 0.0f) return CallClass::trivial;
  return CallClass::product;
}

}  // namespace

CallClass normalise(const CblasArguments& raw, GemmCall& call) noexcept {
  constexpr int kRowMajor = 101;
  constexpr int kColumnMajor = 102;
  call.alpha = raw.alpha;
  call.beta = raw.beta;
  call.k = raw.k;
  call.c = raw.c;
  call.ldc = raw.ldc;
  Letter trans_a = letter_of(raw.trans_a);
  Letter trans_b = letter_of(raw.trans_b);
  if (raw.order == kColumnMajor) {
    call.m = raw.m;
    call.n = raw.n;
    call.a = raw.a;
    call.lda = raw.lda;
    call.b = raw.b;
    call.ldb = raw.ldb;
  } else if (raw.order == kRowMajor) {
    // The same memory read by columns is the transpose, and (op(A) op(B))^T = op(B)^T op(A)^T: A and B change
    // places, and so do m and n.
    call.m = raw.n;
    call.n = raw.m;
    call.a = raw.b;
    call.lda = raw.ldb;
    call.b = raw.a;
    call.ldb = raw.lda;
    std::swap(trans_a, trans_b);
  } else {
    return CallClass::illegal;
  }
  return classify(trans_a, trans_b, call);
}

CallClass normalise(const FortranArguments& raw, GemmCall& call) noexcept {
  call.alpha = raw.alpha;
  call.beta = raw.beta;
  call.m = raw.m;
  call.n = raw.n;
  call.k = raw.k;
  call.a = raw.a;
  call.lda = raw.lda;
  call.b = raw.b;
  call.ldb = raw.ldb;
  call.c = raw.c;
  call.ldc = raw.ldc;
  return classify(letter_of(raw.trans_a), letter_of(raw.trans_b), call);
}

}  // namespace gemmhoist
