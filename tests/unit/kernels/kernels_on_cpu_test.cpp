// The kernels' own source, compiled as C++ and run on fibers, against a plain loop. Every fp32 kernel sums in
// the order of k with one FMA a term, so results are the same to the last bit.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/checked.hpp"
#include "cuda_on_cpu.hpp"
#include "fenced_floats.hpp"
#include "kernels/registry.hpp"

// The kernels, as C++.
#include "kernels/sgemm_fp32_128x128x16_s3_sm80.cu"
#include "kernels/sgemm_fp32_128x128x8_s2_sm75.cu"
#include "kernels/sgemm_fp32_128x256x16_s6_sm80.cu"
#include "kernels/sgemm_fp32_16x16x1_s1_sm75.cu"
#include "kernels/sgemm_fp32_64x64x16_s3_sm80.cu"
#include "kernels/transpose_64x64_sm75.cu"

namespace gemmhoist::kernels::testing {
namespace {

using GemmFunction = void (*)(GemmKernelParams);

struct NamedGemm {
  const char* name;
  GemmFunction function;
};
// Parameters by value have the same function type, const or not.
const NamedGemm kGemms[] = {
    {"sgemm_fp32_128x256x16_s6_sm80", sgemm_fp32_128x256x16_s6_sm80},
    {"sgemm_fp32_128x128x16_s3_sm80", sgemm_fp32_128x128x16_s3_sm80},
    {"sgemm_fp32_64x64x16_s3_sm80", sgemm_fp32_64x64x16_s3_sm80},
    {"sgemm_fp32_128x128x8_s2_sm75", sgemm_fp32_128x128x8_s2_sm75},
    {"sgemm_fp32_16x16x1_s1_sm75", sgemm_fp32_16x16x1_s1_sm75},
};

const KernelDescriptor& descriptor(const std::string& name) {
  for (const KernelDescriptor& kernel : known())
    if (kernel.name == name) return kernel;
  throw std::invalid_argument(name);
}

struct Shape {
  std::int32_t m, n, k;
};

// Sizes come from the tile: less than one, one less and one more, several; depths from the ring.
std::vector<Shape> shapes(const KernelDescriptor& kernel) {
  const int m = kernel.tile_m, n = kernel.tile_n, k = kernel.tile_k, s = kernel.stages;
  return {
      {1, 1, k},
      {3, 5, k * (s + 1)},
      {m - 1, n + 1, k * s},
      {m + 1, n - 1, 2 * k},
      {m, n, k * (s - 1 > 0 ? s - 1 : 1)},
      {m, n, k * (2 * s + 1)},
      {2 * m + 7, n + 2, k * (s + 2)},
  };
}

std::uint32_t bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

struct Product {
  Product(const KernelDescriptor& kernel, Shape shape, std::uint32_t seed)
      : lda(round_up(shape.m, kernel.tile_m)),
        ldb(round_up(shape.n, kernel.tile_n)),
        ldc(round_up(shape.m, 4) + 4),
        a(static_cast<std::size_t>(round_up(lda, kPanelAlignment) * shape.k)),
        b(static_cast<std::size_t>(round_up(ldb, kPanelAlignment) * shape.k)),
        c(static_cast<std::size_t>(ldc * (shape.n - 1) + round_up(shape.m, 4))) {
    lda = round_up(lda, kPanelAlignment);
    ldb = round_up(ldb, kPanelAlignment);
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::int64_t p = 0; p < shape.k; ++p) {
      for (std::int64_t i = 0; i < shape.m; ++i) a[i + p * lda] = uniform(random);
      for (std::int64_t j = 0; j < shape.n; ++j) b[j + p * ldb] = uniform(random);
    }
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = uniform(random);
  }

  std::int64_t lda, ldb, ldc;
  FencedFloats a, b, c;
};

void check(const NamedGemm& gemm, Shape shape, float alpha, bool accumulate,
           const cuda_on_cpu::Machine& machine) {
  const KernelDescriptor& kernel = descriptor(gemm.name);
  Product product(kernel, shape, static_cast<std::uint32_t>(shape.m * 31 + shape.n * 7 + shape.k));
  std::vector<float> before(product.c.data(), product.c.data() + product.c.size());
  const GemmKernelParams params{
      product.a.data(), product.b.data(), product.c.data(), product.lda, product.ldb,       product.ldc,
      shape.m,          shape.n,          shape.k,          alpha,       accumulate ? 1 : 0};
  const LaunchShape launch = launch_shape(kernel, params);
  ASSERT_TRUE(cuda_on_cpu::run_grid(machine, launch.grid_x, launch.threads, launch.shared_bytes,
                                    [&] { gemm.function(params); }));
  for (std::int64_t j = 0; j < shape.n; ++j) {
    for (std::int64_t i = 0; i < product.ldc; ++i) {
      const auto at = static_cast<std::size_t>(i + j * product.ldc);
      if (at >= product.c.size()) break;
      float expected = before[at];
      if (i < shape.m) {
        float sum = 0;
        for (std::int64_t p = 0; p < shape.k; ++p)
          sum = std::fma(product.a[i + p * product.lda], product.b[j + p * product.ldb], sum);
        expected = alpha * (sum + (accumulate ? before[at] : 0.0f));
      }
      ASSERT_EQ(bits(product.c[at]), bits(expected))
          << gemm.name << " m=" << shape.m << " n=" << shape.n << " k=" << shape.k << " at " << i << ',' << j;
    }
  }
}

class KernelsOnCpu : public ::testing::TestWithParam<NamedGemm> {};

TEST_P(KernelsOnCpu, MatchesALoopBitForBitAtEverySize) {
  const KernelDescriptor& kernel = descriptor(GetParam().name);
  for (const Shape& shape : shapes(kernel)) {
    check(GetParam(), shape, 1.0f, false, {});
    if (HasFatalFailure()) return;
  }
}

TEST_P(KernelsOnCpu, ScalesTheSumWithWhatWasThere) {
  const KernelDescriptor& kernel = descriptor(GetParam().name);
  check(GetParam(), {kernel.tile_m - 1, kernel.tile_n - 3, 2 * kernel.tile_k}, -1.75f, true, {});
}

TEST_P(KernelsOnCpu, NeedsNoLuckInTheOrderOfThreadsAndCopies) {
  using cuda_on_cpu::CopiesLand, cuda_on_cpu::ThreadOrder;
  const KernelDescriptor& kernel = descriptor(GetParam().name);
  const Shape shape{kernel.tile_m, kernel.tile_n, kernel.tile_k * (2 * kernel.stages + 2)};
  for (const auto copies : {CopiesLand::at_once, CopiesLand::when_waited_for})
    for (const auto order : {ThreadOrder::forwards, ThreadOrder::backwards, ThreadOrder::by_warp}) {
      check(GetParam(), shape, 1.0f, false, {copies, order});
      if (HasFatalFailure()) return;
    }
}

TEST_P(KernelsOnCpu, DoesNotReadCUnlessAsked) {
  const KernelDescriptor& kernel = descriptor(GetParam().name);
  const Shape shape{kernel.tile_m + 1, 3, kernel.tile_k};
  Product product(kernel, shape, 5);
  for (std::size_t i = 0; i < product.c.size(); ++i) product.c[i] = std::numeric_limits<float>::quiet_NaN();
  const GemmKernelParams params{product.a.data(),
                                product.b.data(),
                                product.c.data(),
                                product.lda,
                                product.ldb,
                                product.ldc,
                                shape.m,
                                shape.n,
                                shape.k,
                                2.0f,
                                0};
  const LaunchShape launch = launch_shape(kernel, params);
  ASSERT_TRUE(cuda_on_cpu::run_grid({}, launch.grid_x, launch.threads, launch.shared_bytes,
                                    [&] { GetParam().function(params); }));
  for (std::int64_t j = 0; j < shape.n; ++j)
    for (std::int64_t i = 0; i < shape.m; ++i) ASSERT_FALSE(std::isnan(product.c[i + j * product.ldc]));
}

INSTANTIATE_TEST_SUITE_P(All, KernelsOnCpu, ::testing::ValuesIn(kGemms),
                         [](const auto& gemm) { return std::string(gemm.param.name); });

TEST(KernelsOnCpu, EveryGemmOfTheRegistryIsCheckedHere) {
  std::size_t gemms = 0;
  for (const KernelDescriptor& kernel : known())
    gemms += kernel.role == KernelRole::gemm || kernel.role == KernelRole::gemm_reference;
  EXPECT_EQ(gemms, std::size(kGemms));
}

void check_transpose(std::int32_t rows, std::int32_t cols, std::int64_t skew) {
  const KernelDescriptor& kernel = descriptor("transpose_64x64_sm75");
  const std::int64_t ld_source = cols + 3, ld_destination = rows + 5;
  FencedFloats source(static_cast<std::size_t>(skew + ld_source * (rows - 1) + cols));
  FencedFloats destination(static_cast<std::size_t>(ld_destination * (cols - 1) + rows));
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i);
  for (std::size_t i = 0; i < destination.size(); ++i) destination[i] = -1;
  const TransposeKernelParams params{
      source.data() + skew, destination.data(), ld_source, ld_destination, rows, cols};
  const LaunchShape launch = launch_shape(kernel, params);
  ASSERT_TRUE(cuda_on_cpu::run_grid({}, launch.grid_x, launch.threads, launch.shared_bytes,
                                    [&] { transpose_64x64_sm75(params); }));
  for (std::int64_t col = 0; col < cols; ++col)
    for (std::int64_t row = 0; row < ld_destination; ++row) {
      const auto at = static_cast<std::size_t>(row + col * ld_destination);
      if (at >= destination.size()) break;
      const float expected = row < rows ? source[static_cast<std::size_t>(skew + col + row * ld_source)] : -1;
      ASSERT_EQ(destination[at], expected) << rows << 'x' << cols << " at " << row << ',' << col;
    }
}

TEST(TransposeOnCpu, TurnsEveryElementAndWritesNothingElse) {
  for (const std::int32_t rows : {1, 7, 63, 64, 65, 200})
    for (const std::int32_t cols : {1, 31, 64, 129})
      for (const std::int64_t skew : {0, 1}) {
        check_transpose(rows, cols, skew);
        if (HasFatalFailure()) return;
      }
}

}  // namespace
}  // namespace gemmhoist::kernels::testing
