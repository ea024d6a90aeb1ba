// The exported spellings: each forwards, and does nothing else. What is left to the provider goes there by a
// jump with the program's own arguments in place (a test reads the machine code), so that the provider, and
// the program's xerbla behind it, see the call as if we were not there.
#include <cstdint>

#include "abi/serve.hpp"

using gemmhoist::abi::CblasFunction;
using gemmhoist::abi::FortranFunction;
using gemmhoist::abi::serve_cblas;
using gemmhoist::abi::serve_fortran;
using gemmhoist::fallback::Spelling;

// Unoptimised builds would call instead of jump.
#pragma GCC optimize("O2")
#pragma GCC visibility push(default)
extern "C" {

void cblas_sgemm(int order, int trans_a, int trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                 float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta,
                 float* c, std::int64_t ldc) {
  const CblasFunction next = serve_cblas(Spelling::cblas_sgemm, order, trans_a, trans_b, m, n, k, alpha, a,
                                         lda, b, ldb, beta, c, ldc);
  if (next != nullptr) return next(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void cblas_sgemm64_(int order, int trans_a, int trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                    float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                    float beta, float* c, std::int64_t ldc) {
  const CblasFunction next = serve_cblas(Spelling::cblas_sgemm64_, order, trans_a, trans_b, m, n, k, alpha, a,
                                         lda, b, ldb, beta, c, ldc);
  if (next != nullptr) return next(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void cblas_sgemm_64(int order, int trans_a, int trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                    float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                    float beta, float* c, std::int64_t ldc) {
  const CblasFunction next = serve_cblas(Spelling::cblas_sgemm_64, order, trans_a, trans_b, m, n, k, alpha, a,
                                         lda, b, ldb, beta, c, ldc);
  if (next != nullptr) return next(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void scipy_cblas_sgemm(int order, int trans_a, int trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                       float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                       float beta, float* c, std::int64_t ldc) {
  const CblasFunction next = serve_cblas(Spelling::scipy_cblas_sgemm, order, trans_a, trans_b, m, n, k, alpha,
                                         a, lda, b, ldb, beta, c, ldc);
  if (next != nullptr) return next(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void scipy_cblas_sgemm64_(int order, int trans_a, int trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                          float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                          float beta, float* c, std::int64_t ldc) {
  const CblasFunction next = serve_cblas(Spelling::scipy_cblas_sgemm64_, order, trans_a, trans_b, m, n, k,
                                         alpha, a, lda, b, ldb, beta, c, ldc);
  if (next != nullptr) return next(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void sgemm_(const char* trans_a, const char* trans_b, const void* m, const void* n, const void* k,
            const float* alpha, const float* a, const void* lda, const float* b, const void* ldb,
            const float* beta, float* c, const void* ldc) {
  const FortranFunction next =
      serve_fortran(Spelling::sgemm_, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  if (next != nullptr) return next(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void sgemm(const char* trans_a, const char* trans_b, const void* m, const void* n, const void* k,
           const float* alpha, const float* a, const void* lda, const float* b, const void* ldb,
           const float* beta, float* c, const void* ldc) {
  const FortranFunction next =
      serve_fortran(Spelling::sgemm, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  if (next != nullptr) return next(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void sgemm_64_(const char* trans_a, const char* trans_b, const void* m, const void* n, const void* k,
               const float* alpha, const float* a, const void* lda, const float* b, const void* ldb,
               const float* beta, float* c, const void* ldc) {
  const FortranFunction next =
      serve_fortran(Spelling::sgemm_64_, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  if (next != nullptr) return next(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void scipy_sgemm_(const char* trans_a, const char* trans_b, const void* m, const void* n, const void* k,
                  const float* alpha, const float* a, const void* lda, const float* b, const void* ldb,
                  const float* beta, float* c, const void* ldc) {
  const FortranFunction next =
      serve_fortran(Spelling::scipy_sgemm_, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  if (next != nullptr) return next(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void scipy_sgemm_64_(const char* trans_a, const char* trans_b, const void* m, const void* n, const void* k,
                     const float* alpha, const float* a, const void* lda, const float* b, const void* ldb,
                     const float* beta, float* c, const void* ldc) {
  const FortranFunction next = serve_fortran(Spelling::scipy_sgemm_64_, trans_a, trans_b, m, n, k, alpha, a,
                                             lda, b, ldb, beta, c, ldc);
  if (next != nullptr) return next(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // extern "C"
#pragma GCC visibility pop
