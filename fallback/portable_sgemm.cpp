// The portable product: no BLAS, no heap, under 3 KiB of stack. A 16 x 6 tile of C stays in registers over
// the whole of k, so that alpha scales the sum; slices of A and B are copied to the stack, which makes one
// inner loop serve all four transposes.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "fallback/fallback.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gemmhoist::fallback {
namespace {

constexpr int kRows = 16;   // two 8-float registers
constexpr int kCols = 6;    // 12 accumulators of the 16 registers, 2 for A, 1 for B
constexpr int kDepth = 16;  // slices of 1 KiB and 384 bytes: the stack may be 16 KiB in all

struct Slices {
  alignas(32) float a[kDepth][kRows];
  float b[kDepth][kCols];
};
struct Accumulators {
  alignas(32) float c[kCols][kRows];
};

// A fused multiply-add without libm, whose loading would be most of what a preload costs a process that never
// multiplies. The product of two floats is exact in double; the sum is rounded to odd there (its last bit
// tells whether anything was lost), after which the rounding to float is the only one. Only processors
// without FMA, and the store, come here.
float fused(float x, float y, float z) noexcept {
  const double product = static_cast<double>(x) * y;
  const double addend = z;
  double sum = product + addend;
  const double virtual_addend = sum - product;
  const double lost =
      (product - (sum - virtual_addend)) + (addend - virtual_addend);  // exact (Knuth's two-sum)
  std::uint64_t bits;
  std::memcpy(&bits, &sum, sizeof bits);
  const bool is_finite = (bits >> 52 & 0x7ff) != 0x7ff;
  if (is_finite && lost != 0 && (bits & 1) == 0) {
    bits = (lost > 0) == (sum > 0) ? bits + 1 : bits - 1;
    std::memcpy(&sum, &bits, sizeof sum);
  }
  return static_cast<float>(sum);
}

void accumulate_plain(Accumulators& sums, const Slices& slices, int depth) noexcept {
  for (int l = 0; l < depth; ++l)
    for (int j = 0; j < kCols; ++j)
      for (int i = 0; i < kRows; ++i) sums.c[j][i] = fused(slices.a[l][i], slices.b[l][j], sums.c[j][i]);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void accumulate_avx2(Accumulators& sums, const Slices& slices,
                                                         int depth) noexcept {
  __m256 c[kCols][2];
  for (int j = 0; j < kCols; ++j)
    for (int h = 0; h < 2; ++h) c[j][h] = _mm256_load_ps(&sums.c[j][8 * h]);
  for (int l = 0; l < depth; ++l) {
    const __m256 a0 = _mm256_load_ps(&slices.a[l][0]);
    const __m256 a1 = _mm256_load_ps(&slices.a[l][8]);
    for (int j = 0; j < kCols; ++j) {
      const __m256 b = _mm256_broadcast_ss(&slices.b[l][j]);
      c[j][0] = _mm256_fmadd_ps(a0, b, c[j][0]);
      c[j][1] = _mm256_fmadd_ps(a1, b, c[j][1]);
    }
  }
  for (int j = 0; j < kCols; ++j)
    for (int h = 0; h < 2; ++h) _mm256_store_ps(&sums.c[j][8 * h], c[j][h]);
}
#endif

using Accumulate = void (*)(Accumulators&, const Slices&, int) noexcept;

Accumulate accumulate_for_this_cpu() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return accumulate_avx2;
#endif
  return accumulate_plain;
}

// Rows and columns beyond the matrix are zeros whose products nobody stores; k is never padded, so that no
// 0 * Inf arises.
void fill(Slices& slices, const GemmCall& c, std::int64_t i0, int rows, std::int64_t j0, int cols,
          std::int64_t l0, int depth) noexcept {
  for (int l = 0; l < depth; ++l) {
    float* a = slices.a[l];
    if (c.trans_a == Transpose::no) {
      std::memcpy(a, c.a + i0 + (l0 + l) * c.lda, sizeof(float) * static_cast<std::size_t>(rows));
    } else {
      for (int i = 0; i < rows; ++i) a[i] = c.a[l0 + l + (i0 + i) * c.lda];
    }
    std::fill(a + rows, a + kRows, 0.0f);
    float* b = slices.b[l];
    for (int j = 0; j < cols; ++j) {
      b[j] = c.trans_b == Transpose::no ? c.b[l0 + l + (j0 + j) * c.ldb] : c.b[j0 + j + (l0 + l) * c.ldb];
    }
    std::fill(b + cols, b + kCols, 0.0f);
  }
}

void store(const Accumulators& sums, const GemmCall& c, std::int64_t i0, int rows, std::int64_t j0,
           int cols) noexcept {
  for (int j = 0; j < cols; ++j) {
    float* column = c.c + i0 + (j0 + j) * c.ldc;
    for (int i = 0; i < rows; ++i) {
      const float product = c.alpha * sums.c[j][i];
      column[i] = c.beta == 0 ? product : fused(c.beta, column[i], product);
    }
  }
}

// alpha = 0 or k = 0: A and B are not looked at.
void scale(const GemmCall& c) noexcept {
  if (c.beta == 1) return;
  for (std::int64_t j = 0; j < c.n; ++j) {
    float* column = c.c + j * c.ldc;
    for (std::int64_t i = 0; i < c.m; ++i) column[i] = c.beta == 0 ? 0.0f : c.beta * column[i];
  }
}

}  // namespace

void portable_sgemm(const GemmCall& call) noexcept {
  if (call.m <= 0 || call.n <= 0) return;
  if (call.k <= 0 || call.alpha == 0) {
    scale(call);
    return;
  }
  const Accumulate accumulate = accumulate_for_this_cpu();
  Slices slices;
  for (std::int64_t i0 = 0; i0 < call.m; i0 += kRows) {
    const int rows = static_cast<int>(std::min<std::int64_t>(kRows, call.m - i0));
    for (std::int64_t j0 = 0; j0 < call.n; j0 += kCols) {
      const int cols = static_cast<int>(std::min<std::int64_t>(kCols, call.n - j0));
      Accumulators sums{};
      for (std::int64_t l0 = 0; l0 < call.k; l0 += kDepth) {
        const int depth = static_cast<int>(std::min<std::int64_t>(kDepth, call.k - l0));
        fill(slices, call, i0, rows, j0, cols, l0, depth);
        accumulate(sums, slices, depth);
      }
      store(sums, call, i0, rows, j0, cols);
    }
  }
}

}  // namespace gemmhoist::fallback
