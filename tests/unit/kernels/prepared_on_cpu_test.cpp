// Products of images on the CPU: the kernels' own source on fibers, operands prepared by the kernels' own
// source, against sums in fp64.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/checked.hpp"
#include "cuda_on_cpu.hpp"
#include "fenced_floats.hpp"
#include "kernels/registry.hpp"

// The kernels, as C++.
#include "kernels/prepare_bf16x6_128x32_sm80.cu"
#include "kernels/prepare_tf32_128x32_sm80.cu"
#include "kernels/sgemm_bf16x6_128x128x32_s2_sm80.cu"
#include "kernels/sgemm_bf16x6_128x128x32_s4_sm90a.cu"
#include "kernels/sgemm_leftover_fp32_128x128x16_s3_sm80.cu"
#include "kernels/sgemm_tf32_128x128x32_s3_sm80.cu"
#include "kernels/sgemm_tf32_256x128x32_s4_sm90a.cu"

namespace gemmhoist::kernels::testing {
namespace {

struct Kernels {
  const KernelDescriptor& product;
  void (*multiply)(PreparedGemmKernelParams);
  const KernelDescriptor& preparation;
  void (*prepare)(PrepareKernelParams);
};
const Kernels kKernels[] = {
    {descriptor_sgemm_bf16x6_128x128x32_s4_sm90a, sgemm_bf16x6_128x128x32_s4_sm90a,
     descriptor_prepare_bf16x6_128x32_sm80, prepare_bf16x6_128x32_sm80},
    {descriptor_sgemm_tf32_256x128x32_s4_sm90a, sgemm_tf32_256x128x32_s4_sm90a,
     descriptor_prepare_tf32_128x32_sm80, prepare_tf32_128x32_sm80},
    {descriptor_sgemm_bf16x6_128x128x32_s2_sm80, sgemm_bf16x6_128x128x32_s2_sm80,
     descriptor_prepare_bf16x6_128x32_sm80, prepare_bf16x6_128x32_sm80},
    {descriptor_sgemm_tf32_128x128x32_s3_sm80, sgemm_tf32_128x128x32_s3_sm80,
     descriptor_prepare_tf32_128x32_sm80, prepare_tf32_128x32_sm80},
};

struct Shape {
  std::int32_t m, n, k;
};

// One operand: K-outer, padded as panels are, and its image between pages without access.
struct PreparedOperand {
  std::int64_t ld;
  FencedFloats panel, image, ranges;
  PrepareKernelParams params;

  PreparedOperand(const Kernels& kernels, std::int32_t rows, std::int32_t k, std::int32_t tile,
                  std::mt19937& random)
      : ld(round_up(rows, tile)),
        panel(static_cast<std::size_t>(ld * round_up(k, kImageK))),
        image(static_cast<std::size_t>(ld / kImageRows * divide_up(k, kImageK) *
                                       image_facts(kernels.product.precision).unit_bytes() / 4)),
        ranges(static_cast<std::size_t>(ld / kImageRows * divide_up(k, kImageK) * 2)) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::size_t i = 0; i < panel.size(); ++i) panel[i] = 0;
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t i = 0; i < rows; ++i) panel[i + p * ld] = uniform(random);
    params = {panel.data(),
              image.data(),
              reinterpret_cast<MagnitudeRange*>(ranges.data()),
              1,
              ld,
              divide_up(k, kImageK),
              rows,
              k,
              static_cast<std::int32_t>(ld),
              static_cast<std::int32_t>(round_up(k, kImageK))};
  }
};

void run(const KernelDescriptor& kernel, const cuda_on_cpu::Machine& machine, const LaunchShape& launch,
         const std::function<void()>& body) {
  ASSERT_EQ(launch.threads, static_cast<std::uint32_t>(kernel.threads));
  ASSERT_TRUE(cuda_on_cpu::run_grid(machine, launch.grid_x, launch.threads, launch.shared_bytes, body))
      << kernel.name;
}

void prepare(const Kernels& kernels, const PreparedOperand& operand) {
  run(kernels.preparation, {}, launch_shape(kernels.preparation, operand.params),
      [&] { kernels.prepare(operand.params); });
}

float rounded(Precision precision, float value) {
  return precision == Precision::tf32 ? round_to_tf32(value) : value;
}

struct Scaling {
  float alpha;
  bool accumulate;
};

class PreparedOnCpu : public ::testing::TestWithParam<int> {
 protected:
  const Kernels& kernels() const { return kKernels[GetParam()]; }
  void check(Shape shape, Scaling scaling, const cuda_on_cpu::Machine& machine);
};

void PreparedOnCpu::check(Shape shape, Scaling scaling, const cuda_on_cpu::Machine& machine) {
  const KernelDescriptor& kernel = kernels().product;
  std::mt19937 random(static_cast<std::uint32_t>(shape.m * 31 + shape.n * 7 + shape.k));
  PreparedOperand a(kernels(), shape.m, shape.k, kernel.tile_m, random);
  PreparedOperand b(kernels(), shape.n, shape.k, kernel.tile_n, random);
  prepare(kernels(), a);
  prepare(kernels(), b);
  const std::int64_t ldc = round_up(shape.m, 4) + 4;
  FencedFloats c(static_cast<std::size_t>(ldc * (shape.n - 1) + round_up(shape.m, 4)));
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (std::size_t i = 0; i < c.size(); ++i)
    c[i] = scaling.accumulate ? uniform(random) : std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> before(c.data(), c.data() + c.size());
  std::vector<std::uint8_t> marks(static_cast<std::size_t>(divide_up(shape.m, 128) * divide_up(shape.n, 128)),
                                  0xEE);
  const bool marked = kernel.precision == Precision::bf16x6;
  const PreparedGemmKernelParams params{{nullptr, nullptr, c.data(), 0, 0, ldc, shape.m, shape.n,
                                         a.params.padded_k, scaling.alpha, scaling.accumulate},
                                        a.params.image,
                                        b.params.image,
                                        a.params.ranges,
                                        b.params.ranges,
                                        marked ? marks.data() : nullptr,
                                        a.params.unit_pitch,
                                        b.params.unit_pitch};
  run(kernel, machine, launch_shape(kernel, params), [&] { kernels().multiply(params); });
  for (const std::uint8_t mark : marks) ASSERT_EQ(mark, marked ? 0 : 0xEE);
  for (std::int64_t j = 0; j < shape.n; ++j)
    for (std::int64_t i = 0; i < ldc; ++i) {
      const auto at = static_cast<std::size_t>(i + j * ldc);
      if (at >= c.size()) break;
      if (i >= shape.m) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(c[at]), std::bit_cast<std::uint32_t>(before[at]))
            << i << ',' << j;
        continue;
      }
      double sum = 0, size = 0;
      for (std::int64_t p = 0; p < shape.k; ++p) {
        const double term = static_cast<double>(rounded(kernel.precision, a.panel[i + p * a.ld])) *
                            static_cast<double>(rounded(kernel.precision, b.panel[j + p * b.ld]));
        sum += term;
        size += std::fabs(term);
      }
      const double old = scaling.accumulate ? static_cast<double>(before[at]) : 0;
      const double alpha = scaling.alpha;
      ASSERT_NEAR(static_cast<double>(c[at]), alpha * (sum + old),
                  std::fabs(alpha) * (shape.k + 3) * 0x1p-24 * (size + std::fabs(old)))
          << kernel.name << " m=" << shape.m << " n=" << shape.n << " k=" << shape.k << " at " << i << ','
          << j;
    }
}

TEST_P(PreparedOnCpu, MultipliesAtSizesAroundTheTileAndTheRing) {
  const KernelDescriptor& kernel = kernels().product;
  const int m = kernel.tile_m, n = kernel.tile_n, k = kernel.tile_k, s = kernel.stages;
  for (const Shape& shape :
       {Shape{1, 1, 1}, Shape{3, 5, k * s + 1}, Shape{m - 1, n + 1, 2 * k}, Shape{m + 1, n - 1, k},
        Shape{m, n, k * (s - 1)}, Shape{m, n, k * (2 * s + 1) - 3}, Shape{130, 7, k * (s + 2)}}) {
    check(shape, {1.0f, false}, {});
    if (HasFatalFailure()) return;
  }
}

TEST_P(PreparedOnCpu, ScalesTheSumWithWhatWasThere) {
  check({kernels().product.tile_m - 1, 77, 64}, {-1.75f, true}, {});
}

// Sums come to C more than once.
TEST_P(PreparedOnCpu, SumsALongKInParts) {
  const std::int32_t k = kernels().product.arch_specific ? 2176 : 1120;  // one part and some stages
  check({9, 5, k}, {2.0f, false}, {});
  if (kernels().product.arch_specific) check({9, 5, k}, {-1.75f, true}, {});  // the other is slow to play
}

TEST_P(PreparedOnCpu, NeedsNoLuckInTheOrderOfThreadsAndCopies) {
  using cuda_on_cpu::CopiesLand, cuda_on_cpu::ThreadOrder;
  const KernelDescriptor& kernel = kernels().product;
  const Shape shape{kernel.tile_m, kernel.tile_n, kernel.tile_k * (2 * kernel.stages + 2)};
  for (const auto copies : {CopiesLand::at_once, CopiesLand::when_waited_for})
    for (const auto order : {ThreadOrder::forwards, ThreadOrder::backwards, ThreadOrder::by_warp}) {
      check(shape, {1.0f, false}, {copies, order});
      if (HasFatalFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(All, PreparedOnCpu, ::testing::Range(0, static_cast<int>(std::size(kKernels))),
                         [](const auto& index) { return std::string(kKernels[index.param].product.name); });

// Two tiles, one of which holds a value that has no three pieces.
void check_leftover(const Kernels& kernels) {
  const KernelDescriptor& leftover = descriptor_sgemm_leftover_fp32_128x128x16_s3_sm80;
  for (const float odd : {0x1p-149f, 0x1p-120f, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::max()}) {
    std::mt19937 random(5);
    const Shape shape{200, 100, 7 * kImageK};
    PreparedOperand a(kernels, shape.m, shape.k, 128, random), b(kernels, shape.n, shape.k, 128, random);
    a.panel[130 + 3 * a.ld] = odd;
    prepare(kernels, a);
    prepare(kernels, b);
    const std::int64_t ldc = shape.m;
    std::vector<float> c(static_cast<std::size_t>(ldc * shape.n), -7.0f);
    std::uint8_t marks[2] = {0xEE, 0xEE};
    const PreparedGemmKernelParams params{{a.panel.data(), b.panel.data(), c.data(), a.ld, b.ld, ldc, shape.m,
                                           shape.n, a.params.padded_k, 2.0f, 0},
                                          a.params.image,
                                          b.params.image,
                                          a.params.ranges,
                                          b.params.ranges,
                                          marks,
                                          a.params.unit_pitch,
                                          b.params.unit_pitch};
    run(kernels.product, {}, launch_shape(kernels.product, params), [&] { kernels.multiply(params); });
    EXPECT_EQ(marks[0], 0);
    EXPECT_EQ(marks[1], 1);
    const std::vector<float> half = c;
    for (std::int64_t j = 0; j < shape.n; ++j)
      for (std::int64_t i = 0; i < shape.m; ++i) {
        if (i < 128)
          ASSERT_NE(c[i + j * ldc], -7.0f);
        else
          ASSERT_EQ(c[i + j * ldc], -7.0f);
      }
    run(leftover, {}, launch_shape(leftover, params),
        [&] { sgemm_leftover_fp32_128x128x16_s3_sm80(params); });
    for (std::int64_t j = 0; j < shape.n; ++j)
      for (std::int64_t i = 0; i < shape.m; ++i) {
        float expected = half[i + j * ldc];
        if (i >= 128) {
          float sum = 0;
          for (std::int64_t p = 0; p < a.params.padded_k; ++p)
            sum = std::fma(a.panel[i + p * a.ld], b.panel[j + p * b.ld], sum);
          expected = 2.0f * sum;
        }
        if (std::isnan(expected))
          ASSERT_TRUE(std::isnan(c[i + j * ldc]));
        else
          ASSERT_EQ(std::bit_cast<std::uint32_t>(c[i + j * ldc]), std::bit_cast<std::uint32_t>(expected));
      }
  }
}

TEST(LeftoverOnCpu, MakesInFp32WhatIsOutOfRangeAndNothingElse) {
  for (const Kernels& kernels : kKernels)
    if (kernels.product.precision == Precision::bf16x6) check_leftover(kernels);
}

TEST(PreparedOnCpuList, HasEveryProductOfTheRegistry) {
  std::size_t products = 0;
  for (const KernelDescriptor& kernel : known()) products += kernel.role == KernelRole::gemm_prepared;
  EXPECT_EQ(products, std::size(kKernels));
}

TEST(PrepareOnCpu, BothOrdersGiveOneImage) {
  for (const Kernels& kernels : kKernels) {
    std::mt19937 random(6);
    const std::int32_t rows = 131, k = 45;
    PreparedOperand outer(kernels, rows, k, 128, random), inner(kernels, rows, k, 128, random);
    FencedFloats turned(static_cast<std::size_t>(rows) * k);
    for (std::int32_t i = 0; i < rows; ++i)
      for (std::int32_t p = 0; p < k; ++p) turned[i * k + p] = outer.panel[i + p * outer.ld];
    inner.params.source = turned.data();
    inner.params.row_stride = k;
    inner.params.k_stride = 1;
    prepare(kernels, outer);
    prepare(kernels, inner);
    for (std::size_t i = 0; i < outer.image.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(outer.image[i]), std::bit_cast<std::uint32_t>(inner.image[i]))
          << i;
  }
}

TEST(PrepareOnCpu, PiecesSumToTheValue) {
  std::mt19937 random(7);
  std::uniform_int_distribution<std::uint32_t> any(0x08800000u, 0x7F7F7FFFu);  // from 2^-110 on
  for (int trial = 0; trial < 100000; ++trial) {
    float value[8] = {};
    value[0] = std::bit_cast<float>(any(random) | (static_cast<std::uint32_t>(random()) & 0x80000000u));
    PieceRun piece[3];
    split(value, piece);
    float sum = 0;
    for (int p = 2; p >= 0; --p) sum += float_of(piece[p].word[0] << 16);
    ASSERT_EQ(sum, value[0]);
  }
}

}  // namespace
}  // namespace gemmhoist::kernels::testing
