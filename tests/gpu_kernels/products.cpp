#include "products.hpp"

#include <cmath>
#include <cstdio>

#include "core/checked.hpp"

namespace gemmhoist::gpu_kernels {

std::vector<Shape> small_shapes(const KernelDescriptor& kernel) {
  const int m = kernel.tile_m, n = kernel.tile_n, k = kernel.tile_k, s = kernel.stages;
  std::vector<Shape> shapes{
      {1, 1, k, 1},
      {3, 5, k * (s + 1), k * s + 1},
      {m - 1, n + 1, k * s, k * s},
      {m + 1, n - 1, 2 * k, 2 * k - (k > 1)},
      {m, n, k, k},
      {m, n, k * (2 * s + 1), k * (2 * s + 1) - k / 2},
      {2 * m + 7, n + 2, k * (s + 2), k * (s + 2)},
      {m + 33, 3 * n + 1, k * s, k * s - k / 4},
  };
  if (few_shapes) shapes = {shapes[1], shapes[3]};
  return shapes;
}

GuardedC::GuardedC(std::int64_t rows, std::int64_t cols)
    : m(rows),
      n(cols),
      ldc(round_up(rows, 4) + 8),
      values(static_cast<std::size_t>(2 * kMargin + ldc * cols), kGuard) {}

bool GuardedC::guards_whole() const {
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(values.size()); ++at) {
    const std::int64_t inside = at - kMargin;
    const bool element = inside >= 0 && inside < ldc * n && inside % ldc < m;
    if (!element && !is_guard(values[static_cast<std::size_t>(at)])) return false;
  }
  return true;
}

Operands::Operands(const KernelDescriptor& kernel, const Shape& shape, Family family, std::mt19937& random)
    : lda(round_up(round_up(shape.m, kernel.tile_m), kPanelAlignment)),
      ldb(round_up(round_up(shape.n, kernel.tile_n), kPanelAlignment)),
      a(static_cast<std::size_t>(lda * shape.k)),
      b(static_cast<std::size_t>(ldb * shape.k)) {
  fill_panel(family, Operand::a, {shape.m, lda, shape.k, shape.real_k}, a, random);
  fill_panel(family, Operand::b, {shape.n, ldb, shape.k, shape.real_k}, b, random);
}

Sums::Sums(const Operands& operands, const Shape& shape)
    : sum(static_cast<std::size_t>(shape.m) * static_cast<std::size_t>(shape.n)), magnitude(sum.size()) {
  for (std::int64_t j = 0; j < shape.n; ++j) {
    double* const column = sum.data() + j * shape.m;
    double* const sizes = magnitude.data() + j * shape.m;
    for (std::int64_t p = 0; p < shape.k; ++p) {
      const double b = operands.b[static_cast<std::size_t>(j + p * operands.ldb)];
      const float* const a = operands.a.data() + p * operands.lda;
      for (std::int64_t i = 0; i < shape.m; ++i) {
        column[i] += a[i] * b;
        sizes[i] += std::fabs(a[i] * b);
      }
    }
  }
}

bool within_bound(double k, Scaling scaling, double sum, double magnitude, double old, float got) {
  const double alpha = scaling.alpha, beta = scaling.accumulate ? alpha : 0.0;
  const double expected = alpha * sum + (scaling.accumulate ? beta * old : 0.0);
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  const double size = std::fabs(alpha) * magnitude + (scaling.accumulate ? std::fabs(beta * old) : 0.0);
  const double bound =
      (k + 3) * 0x1p-24 * size + (k + 3) * 0x1p-149 * (1 + std::fabs(alpha) + std::fabs(beta));
  return std::fabs(got - expected) <= bound;  // false for NaN
}

std::string describe(const KernelDescriptor& kernel, const Shape& shape, const char* family,
                     Scaling scaling) {
  char text[256];
  std::snprintf(text, sizeof text, "%s m=%d n=%d k=%d (%d) %s alpha=%g accumulate=%d", kernel.name, shape.m,
                shape.n, shape.k, shape.real_k, family, static_cast<double>(scaling.alpha),
                scaling.accumulate);
  return text;
}

void fill_c(GuardedC& c, const Sums& sums, Scaling scaling, std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  if (!scaling.accumulate) return;
  for (std::int64_t j = 0; j < c.n; ++j)
    for (std::int64_t i = 0; i < c.m; ++i) {
      const double magnitude = sums.magnitude[static_cast<std::size_t>(i + j * c.m)];
      c.at(i, j) = static_cast<float>(uniform(random) * (std::isfinite(magnitude) ? magnitude : 1.0));
    }
}

}  // namespace gemmhoist::gpu_kernels
