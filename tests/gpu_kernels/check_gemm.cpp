#include "check_gemm.hpp"

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "core/checked.hpp"

namespace gemmhoist::gpu_kernels {
namespace {

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

void check_against_reference(Gpu& gpu, const KernelDescriptor& kernel, const KernelDescriptor& reference,
                             const Shape& shape, Operands operands,
                             const std::function<void(const GemmKernelParams&)>& multiply, Report& report) {
  const Buffer a(gpu, operands.a), b(gpu, operands.b);
  for (float& value : operands.a) value = std::fabs(value);
  for (float& value : operands.b) value = std::fabs(value);
  const Buffer a_size(gpu, operands.a), b_size(gpu, operands.b);
  GuardedC c[3] = {{shape.m, shape.n}, {shape.m, shape.n}, {shape.m, shape.n}};
  const Buffer c_device[3] = {{gpu, c[0].values}, {gpu, c[1].values}, {gpu, c[2].values}};
  const auto into = [&](int i, const Buffer& left, const Buffer& right) {
    return GemmKernelParams{left.device(),
                            right.device(),
                            c_device[i].device() + GuardedC::kMargin,
                            operands.lda,
                            operands.ldb,
                            c[i].ldc,
                            shape.m,
                            shape.n,
                            shape.k,
                            1.0f,
                            0};
  };
  multiply(into(0, a, b));
  gpu.launch(reference, into(1, a, b));
  gpu.launch(reference, into(2, a_size, b_size));
  gpu.synchronize();
  for (int i = 0; i < 3; ++i) c_device[i].download(c[i].values);
  const std::string what = describe(kernel, shape, "against the reference kernel", {1.0f, false});
  report.check(c[0].guards_whole(), what + ": wrote outside C");
  std::int64_t wrong = 0;
  for (std::int64_t j = 0; j < shape.n; ++j)
    for (std::int64_t i = 0; i < shape.m; ++i) {
      // Both are within the bound of the true value, hence within twice of each other.
      const double bound = 2 * (shape.k + 3) * 0x1p-24 * static_cast<double>(c[2].at(i, j));
      wrong += !(std::fabs(static_cast<double>(c[0].at(i, j)) - static_cast<double>(c[1].at(i, j))) <= bound);
    }
  report.check(wrong == 0, what + ": " + std::to_string(wrong) + " wrong");
}

void check_large_products(Gpu& gpu, const KernelDescriptor& kernel, const KernelDescriptor& reference,
                          Report& report) {
  if (few_shapes) return;
  std::mt19937 random(21);
  for (const Shape& shape : kLargeShapes)
    check_against_reference(
        gpu, kernel, reference, shape, Operands(kernel, shape, Family::signed_unit, random),
        [&](const GemmKernelParams& params) { gpu.launch(kernel, params); }, report);
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
