#include "fallback/adapters.hpp"

#include <cstdint>

#include "core/gemm_rules.hpp"
#include "fallback/illegal_report.hpp"

namespace gemmhoist::fallback {
namespace {

template <typename Raw>
void serve(Spelling spelling, const Raw& raw) noexcept {
  GemmCall call;
  if (normalise(raw, call) != CallClass::illegal) {
    multiply(provider(spelling), call);
    return;
  }
  if (const std::int64_t parameter = illegal_parameter(raw); parameter >= 0) report_illegal(parameter);
}

// OpenBLAS takes "conjugate, not transposed" for real data as not transposed.
int without_conjugation(int cblas_transpose) noexcept {
  return cblas_transpose == 114 ? 111 : cblas_transpose;
}
char without_conjugation(char letter) noexcept {
  return letter == 'R' || letter == 'r' ? 'N' : letter;
}

// 32-bit integers come with anything in the upper halves of their registers and stack slots.
std::int64_t narrowed(std::int64_t value, bool ilp64) noexcept {
  return ilp64 ? value : static_cast<std::int32_t>(value);
}
std::int64_t read(const void* value, bool ilp64) noexcept {
  return ilp64 ? *static_cast<const std::int64_t*>(value) : *static_cast<const std::int32_t*>(value);
}

template <Spelling S>
void cblas_adapter(int order, int trans_a, int trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                   float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                   float beta, float* c, std::int64_t ldc) noexcept {
  const bool wide = provider(S).arguments_ilp64;
  serve(S, CblasArguments{order, without_conjugation(trans_a), without_conjugation(trans_b),
                          narrowed(m, wide), narrowed(n, wide), narrowed(k, wide), alpha, a,
                          narrowed(lda, wide), b, narrowed(ldb, wide), beta, c, narrowed(ldc, wide)});
}

template <Spelling S>
void fortran_adapter(const char* trans_a, const char* trans_b, const void* m, const void* n, const void* k,
                     const float* alpha, const float* a, const void* lda, const float* b, const void* ldb,
                     const float* beta, float* c, const void* ldc) noexcept {
  const bool wide = provider(S).arguments_ilp64;
  serve(S, FortranArguments{without_conjugation(*trans_a), without_conjugation(*trans_b), read(m, wide),
                            read(n, wide), read(k, wide), *alpha, a, read(lda, wide), b, read(ldb, wide),
                            *beta, c, read(ldc, wide)});
}

}  // namespace

void* adapter_of(Spelling spelling) noexcept {
  switch (spelling) {
    case Spelling::cblas_sgemm:
      return reinterpret_cast<void*>(&cblas_adapter<Spelling::cblas_sgemm>);
    case Spelling::cblas_sgemm64_:
      return reinterpret_cast<void*>(&cblas_adapter<Spelling::cblas_sgemm64_>);
    case Spelling::cblas_sgemm_64:
      return reinterpret_cast<void*>(&cblas_adapter<Spelling::cblas_sgemm_64>);
    case Spelling::scipy_cblas_sgemm:
      return reinterpret_cast<void*>(&cblas_adapter<Spelling::scipy_cblas_sgemm>);
    case Spelling::scipy_cblas_sgemm64_:
      return reinterpret_cast<void*>(&cblas_adapter<Spelling::scipy_cblas_sgemm64_>);
    case Spelling::sgemm_:
      return reinterpret_cast<void*>(&fortran_adapter<Spelling::sgemm_>);
    case Spelling::sgemm:
      return reinterpret_cast<void*>(&fortran_adapter<Spelling::sgemm>);
    case Spelling::sgemm_64_:
      return reinterpret_cast<void*>(&fortran_adapter<Spelling::sgemm_64_>);
    case Spelling::scipy_sgemm_:
      return reinterpret_cast<void*>(&fortran_adapter<Spelling::scipy_sgemm_>);
    case Spelling::scipy_sgemm_64_:
      return reinterpret_cast<void*>(&fortran_adapter<Spelling::scipy_sgemm_64_>);
    case Spelling::count_:
      break;
  }
  return nullptr;
}

}  // namespace gemmhoist::fallback
