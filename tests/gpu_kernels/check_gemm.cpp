#include "check_gemm.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/checked.hpp"
#include "families.hpp"

namespace gemmhoist::gpu_kernels {
namespace {

struct Shape {
  std::int32_t m, n, k, real_k;
};

// From the tile: less than one, one less, one more, several; from the stages: fewer, as many, one more, twice
// and one. Where k is deep enough, its last rows are padding.
std::vector<Shape> small_shapes(const KernelDescriptor& kernel) {
  const int m = kernel.tile_m, n = kernel.tile_n, k = kernel.tile_k, s = kernel.stages;
  return {
      {1, 1, k, 1},
      {3, 5, k * (s + 1), k * s + 1},
      {m - 1, n + 1, k * s, k * s},
      {m + 1, n - 1, 2 * k, 2 * k - (k > 1)},
      {m, n, k, k},
      {m, n, k * (2 * s + 1), k * (2 * s + 1) - k / 2},
      {2 * m + 7, n + 2, k * (s + 2), k * (s + 2)},
      {m + 33, 3 * n + 1, k * s, k * s - k / 4},
  };
}

struct Scaling {
  float alpha;
  bool accumulate;
};
constexpr Scaling kScalings[] = {{1.0f, false}, {-1.75f, true}, {0x1p-3f, true}, {3.0f, false}};

// A bit pattern that no kernel makes: a NaN with a payload of its own.
constexpr std::uint32_t kGuardBits = 0xFFC0DEADu;
const float kGuard = std::bit_cast<float>(kGuardBits);
bool is_guard(float value) {
  return std::bit_cast<std::uint32_t>(value) == kGuardBits;
}

// C with guards between its columns, before it and behind it.
struct GuardedC {
  static constexpr std::int64_t kMargin = 256;
  std::int64_t m, n, ldc;
  std::vector<float> values;

  GuardedC(std::int64_t rows, std::int64_t cols)
      : m(rows),
        n(cols),
        ldc(round_up(rows, 4) + 8),
        values(static_cast<std::size_t>(2 * kMargin + ldc * cols), kGuard) {}
  float& at(std::int64_t i, std::int64_t j) {
    return values[static_cast<std::size_t>(kMargin + i + j * ldc)];
  }
  float at(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(kMargin + i + j * ldc)];
  }
  bool guards_whole() const {
    for (std::int64_t at = 0; at < static_cast<std::int64_t>(values.size()); ++at) {
      const std::int64_t inside = at - kMargin;
      const bool element = inside >= 0 && inside < ldc * n && inside % ldc < m;
      if (!element && !is_guard(values[static_cast<std::size_t>(at)])) return false;
    }
    return true;
  }
};

struct Operands {
  std::int64_t lda, ldb;
  std::vector<float> a, b;

  Operands(const KernelDescriptor& kernel, const Shape& shape, Family family, std::mt19937& random)
      : lda(round_up(round_up(shape.m, kernel.tile_m), kPanelAlignment)),
        ldb(round_up(round_up(shape.n, kernel.tile_n), kPanelAlignment)),
        a(static_cast<std::size_t>(lda * shape.k)),
        b(static_cast<std::size_t>(ldb * shape.k)) {
    fill_panel(family, Operand::a, {shape.m, lda, shape.k, shape.real_k}, a, random);
    fill_panel(family, Operand::b, {shape.n, ldb, shape.k, shape.real_k}, b, random);
  }
};

// Sums of products, and of their magnitudes, in fp64.
struct Sums {
  std::vector<double> sum, magnitude;

  Sums(const Operands& operands, const Shape& shape)
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
};

// The bound for C = alpha (A B + C0): beta is alpha, or nothing.
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

// C before: numbers of the results' own size where they are added, else guards, which a read would spread.
void fill_c(GuardedC& c, const Sums& sums, Scaling scaling, std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  if (!scaling.accumulate) return;
  for (std::int64_t j = 0; j < c.n; ++j)
    for (std::int64_t i = 0; i < c.m; ++i) {
      const double magnitude = sums.magnitude[static_cast<std::size_t>(i + j * c.m)];
      c.at(i, j) = static_cast<float>(uniform(random) * (std::isfinite(magnitude) ? magnitude : 1.0));
    }
}

void check_product(Gpu& gpu, const KernelDescriptor& kernel, const Shape& shape, Family family,
                   const Sums& sums, const Operands& operands, const Buffer& a, const Buffer& b,
                   Scaling scaling, std::mt19937& random, Report& report) {
  GuardedC before(shape.m, shape.n);
  fill_c(before, sums, scaling, random);
  GuardedC after(shape.m, shape.n);
  Buffer c(gpu, before.values);
  gpu.launch(kernel, GemmKernelParams{a.device(), b.device(), c.device() + GuardedC::kMargin, operands.lda,
                                      operands.ldb, before.ldc, shape.m, shape.n, shape.k, scaling.alpha,
                                      scaling.accumulate ? 1 : 0});
  gpu.synchronize();
  c.download(after.values);
  const std::string what = describe(kernel, shape, to_string(family), scaling);
  report.check(after.guards_whole(), what + ": wrote outside C");
  std::int64_t wrong = 0, wrong_i = 0, wrong_j = 0;
  for (std::int64_t j = 0; j < shape.n; ++j)
    for (std::int64_t i = 0; i < shape.m; ++i) {
      const auto at = static_cast<std::size_t>(i + j * shape.m);
      const float got = after.at(i, j);
      if (!is_guard(got) && within_bound(shape.k, scaling, sums.sum[at], sums.magnitude[at],
                                         static_cast<double>(before.at(i, j)), got))
        continue;
      if (wrong++ == 0) wrong_i = i, wrong_j = j;
    }
  report.check(wrong == 0, what + ": " + std::to_string(wrong) + " wrong, first at " +
                               std::to_string(wrong_i) + "," + std::to_string(wrong_j));
}

}  // namespace

void check_small_products(Gpu& gpu, const KernelDescriptor& kernel, Report& report) {
  std::mt19937 random(20);
  for (const Shape& shape : small_shapes(kernel))
    for (const Family family : kFamilies) {
      const Operands operands(kernel, shape, family, random);
      const Sums sums(operands, shape);
      const Buffer a(gpu, operands.a), b(gpu, operands.b);
      for (const Scaling scaling : kScalings)
        check_product(gpu, kernel, shape, family, sums, operands, a, b, scaling, random, report);
    }
}

void check_large_products(Gpu& gpu, const KernelDescriptor& kernel, const KernelDescriptor& reference,
                          Report& report) {
  std::mt19937 random(21);
  for (const Shape& shape : {Shape{1500, 1300, 704, 700}, Shape{2049, 4097, 512, 512},
                             Shape{130, 260, 16384, 16384}, Shape{46341, 70, 32, 32}}) {
    Operands operands(kernel, shape, Family::signed_unit, random);
    const Buffer a(gpu, operands.a), b(gpu, operands.b);
    for (float& value : operands.a) value = std::fabs(value);
    for (float& value : operands.b) value = std::fabs(value);
    const Buffer a_size(gpu, operands.a), b_size(gpu, operands.b);
    GuardedC c[3] = {{shape.m, shape.n}, {shape.m, shape.n}, {shape.m, shape.n}};
    const Buffer c_device[3] = {{gpu, c[0].values}, {gpu, c[1].values}, {gpu, c[2].values}};
    GemmKernelParams params{a.device(),
                            b.device(),
                            c_device[0].device() + GuardedC::kMargin,
                            operands.lda,
                            operands.ldb,
                            c[0].ldc,
                            shape.m,
                            shape.n,
                            shape.k,
                            1.0f,
                            0};
    gpu.launch(kernel, params);
    params.c = c_device[1].device() + GuardedC::kMargin;
    gpu.launch(reference, params);
    params.a = a_size.device();
    params.b = b_size.device();
    params.c = c_device[2].device() + GuardedC::kMargin;
    gpu.launch(reference, params);
    gpu.synchronize();
    for (int i = 0; i < 3; ++i) c_device[i].download(c[i].values);
    const std::string what = describe(kernel, shape, "against the reference kernel", {1.0f, false});
    report.check(c[0].guards_whole(), what + ": wrote outside C");
    std::int64_t wrong = 0;
    for (std::int64_t j = 0; j < shape.n; ++j)
      for (std::int64_t i = 0; i < shape.m; ++i) {
        // Both are within the bound of the true value, hence within twice of each other.
        const double bound = 2 * (shape.k + 3) * 0x1p-24 * static_cast<double>(c[2].at(i, j));
        wrong +=
            !(std::fabs(static_cast<double>(c[0].at(i, j)) - static_cast<double>(c[1].at(i, j))) <= bound);
      }
    report.check(wrong == 0, what + ": " + std::to_string(wrong) + " wrong");
  }
}

void check_transposes(Gpu& gpu, const KernelDescriptor& kernel, Report& report) {
  const int m = kernel.tile_m, n = kernel.tile_n;
  for (const std::int64_t rows : {1, m - 1, m, m + 1, 5 * m + 3})
    for (const std::int64_t cols : {1, n - 1, n, n + 1, 7 * n + 5})
      for (const std::int64_t skew : {0, 1, 4}) {
        const std::int64_t ld_source = cols + skew, ld_destination = round_up(rows, kPanelAlignment);
        std::vector<float> source(static_cast<std::size_t>(skew + ld_source * rows));
        for (std::size_t i = 0; i < source.size(); ++i)
          source[i] =
              std::bit_cast<float>(static_cast<std::uint32_t>(i * 2654435761u));  // any bits, NaNs too
        std::vector<float> destination(static_cast<std::size_t>(ld_destination * (cols + 2)), kGuard);
        const Buffer from(gpu, source), to(gpu, destination);
        gpu.launch(kernel, TransposeKernelParams{from.device() + skew, to.device() + ld_destination,
                                                 ld_source, ld_destination, static_cast<std::int32_t>(rows),
                                                 static_cast<std::int32_t>(cols)});
        gpu.synchronize();
        to.download(destination);
        std::int64_t wrong = 0;
        for (std::int64_t col = -1; col <= cols; ++col)
          for (std::int64_t row = 0; row < ld_destination; ++row) {
            const float got = destination[static_cast<std::size_t>(row + (col + 1) * ld_destination)];
            const bool inside = col >= 0 && col < cols && row < rows;
            const float expected =
                inside ? source[static_cast<std::size_t>(skew + col + row * ld_source)] : kGuard;
            wrong += std::bit_cast<std::uint32_t>(got) != std::bit_cast<std::uint32_t>(expected);
          }
        report.check(wrong == 0, std::string(kernel.name) + " " + std::to_string(rows) + " x " +
                                     std::to_string(cols) + ": " + std::to_string(wrong) + " wrong");
      }
}

}  // namespace gemmhoist::gpu_kernels
