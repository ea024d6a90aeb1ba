#include "core/gemm_rules.hpp"

#include <utility>

namespace gemmhoist {

namespace {

CallClass classify(Letter trans_a, Letter trans_b, GemmCall& call) noexcept {
  call.trans_a = trans_a == Letter::no ? Transpose::no : Transpose::yes;
  call.trans_b = trans_b == Letter::no ? Transpose::no : Transpose::yes;
  return class_of(trans_a, trans_b, call.m, call.n, call.k, call.alpha, call.lda, call.ldb, call.ldc);
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
