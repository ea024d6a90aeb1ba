// A product in double precision and the project's error bound, for the tests of this layer.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "core/gemm_call.hpp"

namespace gemmhoist {

// Operands of one call, C filled; rows between the matrix and its leading dimension hold a sentinel.
struct Problem {
  std::vector<float> a, b, c;
  GemmCall call;

  Problem(Transpose ta, Transpose tb, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, float beta,
          unsigned seed = 1) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    const std::int64_t rows_a = ta == Transpose::no ? m : k, columns_a = ta == Transpose::no ? k : m;
    const std::int64_t rows_b = tb == Transpose::no ? k : n, columns_b = tb == Transpose::no ? n : k;
    const auto matrix = [&](std::int64_t ld, std::int64_t columns) {
      std::vector<float> values(static_cast<std::size_t>(ld * columns));
      for (float& value : values) value = uniform(engine);
      return values;
    };
    a = matrix(rows_a + 3, columns_a);
    b = matrix(rows_b + 1, columns_b);
    c = matrix(m + 2, n);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = m; i < m + 2; ++i) c[static_cast<std::size_t>(i + j * (m + 2))] = 12345;
    call = {ta, tb, m, n, k, alpha, a.data(), rows_a + 3, b.data(), rows_b + 1, beta, c.data(), m + 2};
  }

  // Elements of `result` (laid out like c) outside the bound of op(A) op(B) on the untouched operands, or
  // with their sentinel overwritten.
  long wrong(const std::vector<float>& result) const {
    long count = 0;
    const double ulp = std::ldexp(1.0, -24), tiny = std::ldexp(1.0, -149);
    for (std::int64_t j = 0; j < call.n; ++j) {
      for (std::int64_t i = 0; i < call.ldc; ++i) {
        const auto at = static_cast<std::size_t>(i + j * call.ldc);
        if (i >= call.m) {
          count += result[at] != 12345;
          continue;
        }
        double sum = 0, magnitude = 0;
        for (std::int64_t l = 0; l < call.k; ++l) {
          const double x = call.a[call.trans_a == Transpose::no ? i + l * call.lda : l + i * call.lda];
          const double y = call.b[call.trans_b == Transpose::no ? l + j * call.ldb : j + l * call.ldb];
          sum += x * y;
          magnitude += std::fabs(x * y);
        }
        const double before = call.beta == 0 ? 0 : double{call.beta} * c[at];
        const double bound = static_cast<double>(call.k + 3) *
                             (ulp * (std::fabs(call.alpha) * magnitude + std::fabs(before)) +
                              tiny * (1 + std::fabs(double{call.alpha}) + std::fabs(double{call.beta})));
        count += !(std::fabs(result[at] - (call.alpha * sum + before)) <= bound);
      }
    }
    return count;
  }
};

}  // namespace gemmhoist
