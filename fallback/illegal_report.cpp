#include "fallback/illegal_report.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <utility>

namespace gemmhoist::fallback {
namespace {

// Lowest number first; a leading dimension is compared with the rows themselves, as OpenBLAS does.
std::int64_t first_illegal(int trans_a, int trans_b, const FortranArguments& raw) noexcept {
  if (trans_a < 0) return 1;
  if (trans_b < 0) return 2;
  if (raw.m < 0) return 3;
  if (raw.n < 0) return 4;
  if (raw.k < 0) return 5;
  if (raw.lda < (trans_a == 0 ? raw.m : raw.k)) return 8;
  if (raw.ldb < (trans_b == 0 ? raw.k : raw.n)) return 10;
  if (raw.ldc < raw.m) return 13;
  return -1;
}

int transposed(char letter) noexcept {
  switch (letter) {
    case 'N':
    case 'n':
    case 'R':
    case 'r':
      return 0;
    case 'T':
    case 't':
    case 'C':
    case 'c':
      return 1;
    default:
      return -1;
  }
}

char letter_of(int cblas_transpose) noexcept {
  switch (cblas_transpose) {
    case 111:
      return 'N';
    case 112:
      return 'T';
    case 113:
      return 'C';
    case 114:
      return 'R';
    default:
      return '?';
  }
}

}  // namespace

std::int64_t illegal_parameter(const FortranArguments& raw) noexcept {
  return first_illegal(transposed(raw.trans_a), transposed(raw.trans_b), raw);
}

std::int64_t illegal_parameter(const CblasArguments& raw) noexcept {
  if (raw.order != 101 && raw.order != 102) return 0;
  FortranArguments same{letter_of(raw.trans_a),
                        letter_of(raw.trans_b),
                        raw.m,
                        raw.n,
                        raw.k,
                        raw.alpha,
                        raw.a,
                        raw.lda,
                        raw.b,
                        raw.ldb,
                        raw.beta,
                        raw.c,
                        raw.ldc};
  if (raw.order == 101) {
    std::swap(same.trans_a, same.trans_b);
    std::swap(same.m, same.n);
    std::swap(same.a, same.b);
    std::swap(same.lda, same.ldb);
  }
  return illegal_parameter(same);
}

void report_illegal(std::int64_t parameter) noexcept {
  constexpr const char* kName = "SGEMM ";
  // The address of a 64-bit number serves an xerbla_ of either width (little-endian machines).
  using Xerbla = int (*)(const char*, const std::int64_t*, std::size_t);
  if (auto xerbla = reinterpret_cast<Xerbla>(dlsym(RTLD_DEFAULT, "xerbla_"))) {
    xerbla(kName, &parameter, 6);
    return;
  }
  std::printf(" ** On entry to %6s parameter number %2d had an illegal value\n", kName,
              static_cast<int>(parameter));
}

}  // namespace gemmhoist::fallback
