// The exported spellings: each forwards, and does nothing else. What is left to the provider goes there by a
// jump with the program's own arguments in place (a test reads the machine code), so that the provider, and
// the program's xerbla behind it, see the call as if we were not there.
#include <cstdint>

#include "abi/at_once.hpp"
#include "abi/serve.hpp"

// Unoptimised builds would call instead of jump.
#pragma GCC optimize("O2")

namespace gemmhoist::abi {
namespace {

using fallback::Spelling;

// Out of line and with the entry's own parameters: the entry jumps here too, and small products do not pay
// for this frame.
template <Spelling spelling>
[[gnu::noinline]] void cblas_examined(int order, int trans_a, int trans_b, std::int64_t m, std::int64_t n,
                                      std::int64_t k, float alpha, float beta, CblasStack stack) {
  const CblasFunction next = serve_cblas(spelling, order, trans_a, trans_b, m, n, k, alpha, beta, stack);
  if (next != nullptr) return next(order, trans_a, trans_b, m, n, k, alpha, beta, stack);
}

template <Spelling spelling>
[[gnu::noinline]] void fortran_examined(const char* trans_a, const char* trans_b, const void* m,
                                        const void* n, const void* k, const float* alpha,
                                        FortranStack stack) {
  const FortranFunction next = serve_fortran(spelling, trans_a, trans_b, m, n, k, alpha, stack);
  if (next != nullptr) return next(trans_a, trans_b, m, n, k, alpha, stack);
}

}  // namespace
}  // namespace gemmhoist::abi

using namespace gemmhoist::abi;
using gemmhoist::fallback::Spelling;

#pragma GCC visibility push(default)
extern "C" {

void cblas_sgemm(int order, int trans_a, int trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                 float alpha, float beta, CblasStack stack) {
  constexpr auto kSelf = Spelling::cblas_sgemm;
  const CblasFunction next = cblas_at_once(kSelf, order, trans_a, trans_b, m, n, k, alpha, stack);
  if (next != nullptr) return next(order, trans_a, trans_b, m, n, k, alpha, beta, stack);
  return cblas_examined<kSelf>(order, trans_a, trans_b, m, n, k, alpha, beta, stack);
}

void cblas_sgemm64_(int order, int trans_a, int trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                    float alpha, float beta, CblasStack stack) {
  constexpr auto kSelf = Spelling::cblas_sgemm64_;
  const CblasFunction next = cblas_at_once(kSelf, order, trans_a, trans_b, m, n, k, alpha, stack);
  if (next != nullptr) return next(order, trans_a, trans_b, m, n, k, alpha, beta, stack);
  return cblas_examined<kSelf>(order, trans_a, trans_b, m, n, k, alpha, beta, stack);
}

void cblas_sgemm_64(int order, int trans_a, int trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                    float alpha, float beta, CblasStack stack) {
  constexpr auto kSelf = Spelling::cblas_sgemm_64;
  const CblasFunction next = cblas_at_once(kSelf, order, trans_a, trans_b, m, n, k, alpha, stack);
  if (next != nullptr) return next(order, trans_a, trans_b, m, n, k, alpha, beta, stack);
  return cblas_examined<kSelf>(order, trans_a, trans_b, m, n, k, alpha, beta, stack);
}

void scipy_cblas_sgemm(int order, int trans_a, int trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                       float alpha, float beta, CblasStack stack) {
  constexpr auto kSelf = Spelling::scipy_cblas_sgemm;
  const CblasFunction next = cblas_at_once(kSelf, order, trans_a, trans_b, m, n, k, alpha, stack);
  if (next != nullptr) return next(order, trans_a, trans_b, m, n, k, alpha, beta, stack);
  return cblas_examined<kSelf>(order, trans_a, trans_b, m, n, k, alpha, beta, stack);
}

void scipy_cblas_sgemm64_(int order, int trans_a, int trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                          float alpha, float beta, CblasStack stack) {
  constexpr auto kSelf = Spelling::scipy_cblas_sgemm64_;
  const CblasFunction next = cblas_at_once(kSelf, order, trans_a, trans_b, m, n, k, alpha, stack);
  if (next != nullptr) return next(order, trans_a, trans_b, m, n, k, alpha, beta, stack);
  return cblas_examined<kSelf>(order, trans_a, trans_b, m, n, k, alpha, beta, stack);
}

void sgemm_(const char* trans_a, const char* trans_b, const void* m, const void* n, const void* k,
            const float* alpha, FortranStack stack) {
  constexpr auto kSelf = Spelling::sgemm_;
  const FortranFunction next = fortran_at_once(kSelf, trans_a, trans_b, m, n, k, alpha, stack);
  if (next != nullptr) return next(trans_a, trans_b, m, n, k, alpha, stack);
  return fortran_examined<kSelf>(trans_a, trans_b, m, n, k, alpha, stack);
}

void sgemm(const char* trans_a, const char* trans_b, const void* m, const void* n, const void* k,
           const float* alpha, FortranStack stack) {
  constexpr auto kSelf = Spelling::sgemm;
  const FortranFunction next = fortran_at_once(kSelf, trans_a, trans_b, m, n, k, alpha, stack);
  if (next != nullptr) return next(trans_a, trans_b, m, n, k, alpha, stack);
  return fortran_examined<kSelf>(trans_a, trans_b, m, n, k, alpha, stack);
}

void sgemm_64_(const char* trans_a, const char* trans_b, const void* m, const void* n, const void* k,
               const float* alpha, FortranStack stack) {
  constexpr auto kSelf = Spelling::sgemm_64_;
  const FortranFunction next = fortran_at_once(kSelf, trans_a, trans_b, m, n, k, alpha, stack);
  if (next != nullptr) return next(trans_a, trans_b, m, n, k, alpha, stack);
  return fortran_examined<kSelf>(trans_a, trans_b, m, n, k, alpha, stack);
}

void scipy_sgemm_(const char* trans_a, const char* trans_b, const void* m, const void* n, const void* k,
                  const float* alpha, FortranStack stack) {
  constexpr auto kSelf = Spelling::scipy_sgemm_;
  const FortranFunction next = fortran_at_once(kSelf, trans_a, trans_b, m, n, k, alpha, stack);
  if (next != nullptr) return next(trans_a, trans_b, m, n, k, alpha, stack);
  return fortran_examined<kSelf>(trans_a, trans_b, m, n, k, alpha, stack);
}

void scipy_sgemm_64_(const char* trans_a, const char* trans_b, const void* m, const void* n, const void* k,
                     const float* alpha, FortranStack stack) {
  constexpr auto kSelf = Spelling::scipy_sgemm_64_;
  const FortranFunction next = fortran_at_once(kSelf, trans_a, trans_b, m, n, k, alpha, stack);
  if (next != nullptr) return next(trans_a, trans_b, m, n, k, alpha, stack);
  return fortran_examined<kSelf>(trans_a, trans_b, m, n, k, alpha, stack);
}

}  // extern "C"
#pragma GCC visibility pop
