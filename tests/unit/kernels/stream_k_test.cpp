// Products dealt out by iterations of k: the dealing itself, and the kernels' own source on fibers.
#include "kernels/stream_k.hpp"

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
#include "kernels/stream_k_choice.hpp"

// The kernels, as C++.
#include "kernels/sgemm_fp32_128x256x32_s3_streamk_nt_sm80.cu"
#include "kernels/sgemm_fp32_64x64x16_s3_streamk_nn_sm80.cu"
#include "kernels/sgemm_fp32_64x64x16_s3_streamk_nt_sm80.cu"
#include "kernels/sgemm_fp32_64x64x16_s3_streamk_tn_sm80.cu"
#include "kernels/sgemm_fp32_64x64x16_s3_streamk_tt_sm80.cu"

namespace gemmhoist::kernels::testing {
namespace {

StreamKParams dealt(const KernelDescriptor& kernel, std::int32_t m, std::int32_t n, std::int32_t k,
                    std::int32_t sms) {
  StreamKParams params{};
  params.gemm.m = m, params.gemm.n = n, params.gemm.k = k;
  deal_out(kernel, sms, params);
  return params;
}

TEST(StreamK, PiecesCoverEveryIterationOnceAndAWorkerHasPartsOfTwoTilesAtMost) {
  std::mt19937 random(4);
  std::uniform_int_distribution<std::int32_t> extent(1, 5000), chip(1, 200);
  const KernelDescriptor& kernel = descriptor_sgemm_fp32_64x64x16_s3_streamk_nt_sm80;
  for (int trial = 0; trial < 300; ++trial) {
    const StreamKParams p = dealt(kernel, extent(random), extent(random), extent(random), chip(random));
    const std::int64_t cut = ticket_count(kernel, p), all = cut * p.iterations;
    ASSERT_EQ(cut == 0, p.workers == 0);
    if (cut == 0) continue;
    ASSERT_EQ(piece_begin(0, p.workers, all), 0);
    ASSERT_EQ(piece_begin(p.workers, p.workers, all), all);
    for (std::int64_t w = 0; w < p.workers; ++w) {
      const std::int64_t begin = piece_begin(w, p.workers, all), end = piece_begin(w + 1, p.workers, all);
      ASSERT_LT(begin, end);
      ASSERT_LE((end - 1) / p.iterations - begin / p.iterations, 1);
      ASSERT_EQ(worker_of(begin, p.workers, all), w);
      ASSERT_EQ(worker_of(end - 1, p.workers, all), w);
    }
  }
}

TEST(StreamK, FullWavesAreWholeAndADeepProductUsesTheWholeChip) {
  const KernelDescriptor& kernel = descriptor_sgemm_fp32_128x256x32_s3_streamk_nt_sm80;
  const StreamKParams square = dealt(kernel, 8192, 8192, 8192, 132);
  EXPECT_EQ(square.whole, 15 * 132);
  EXPECT_EQ(square.workers, 132);
  const StreamKParams deep = dealt(kernel, 512, 512, 65536, 132);
  EXPECT_EQ(deep.whole, 0);
  EXPECT_EQ(deep.workers, 132);
  // A part shorter than kShortestPart is not worth its start.
  EXPECT_EQ(dealt(kernel, 128, 256, 96, 132).workers, 1);
}

// By what was measured on an H200: bench/results/2026-11-30-fp32-shapes.md.
TEST(StreamK, ChoosesByShapeAndByHowOperandsLie) {
  const KernelDescriptor* const kernels[] = {
      &descriptor_sgemm_fp32_128x256x32_s3_streamk_nt_sm80,
      &descriptor_sgemm_fp32_64x64x16_s3_streamk_nt_sm80, &descriptor_sgemm_fp32_64x64x16_s3_streamk_nn_sm80,
      &descriptor_sgemm_fp32_64x64x16_s3_streamk_tn_sm80, &descriptor_sgemm_fp32_64x64x16_s3_streamk_tt_sm80};
  const auto chosen = [&](std::int32_t m, std::int32_t n, std::int32_t k, OperandLayout a, OperandLayout b) {
    GemmKernelParams gemm{};
    gemm.m = m, gemm.n = n, gemm.k = k;
    return std::string(choose_stream_k(kernels, gemm, a, b, {132, 53e12})->name);
  };
  constexpr OperandLayout kOuter{false, true}, kInner{true, true}, kOdd{false, false}, kOddInner{true, false};
  EXPECT_EQ(chosen(8192, 8192, 8192, kOuter, kOuter), kernels[0]->name);
  EXPECT_EQ(chosen(512, 512, 65536, kOuter, kOuter), kernels[0]->name);
  EXPECT_EQ(chosen(16384, 128, 4096, kOuter, kOuter), kernels[1]->name);
  // Small products read operands as they lie, large ones pay for turning them first.
  EXPECT_EQ(chosen(512, 512, 512, kOuter, kInner), kernels[2]->name);
  EXPECT_EQ(chosen(512, 512, 512, kInner, kInner), kernels[3]->name);
  EXPECT_EQ(chosen(512, 512, 512, kInner, kOuter), kernels[4]->name);
  EXPECT_EQ(chosen(4096, 4096, 4096, kInner, kInner), kernels[0]->name);
  // Without alignment a kernel that reads k contiguous cannot serve, and what it would read is prepared.
  EXPECT_EQ(chosen(511, 511, 511, kOdd, kOddInner), kernels[1]->name);
  EXPECT_EQ(choose_stream_k({}, GemmKernelParams{}, kOuter, kOuter, {132, 53e12}), nullptr);
}

struct NamedKernel {
  const KernelDescriptor& facts;
  void (*function)(StreamKParams);
};
const NamedKernel kKernels[] = {
    {descriptor_sgemm_fp32_128x256x32_s3_streamk_nt_sm80, sgemm_fp32_128x256x32_s3_streamk_nt_sm80},
    {descriptor_sgemm_fp32_64x64x16_s3_streamk_nn_sm80, sgemm_fp32_64x64x16_s3_streamk_nn_sm80},
    {descriptor_sgemm_fp32_64x64x16_s3_streamk_nt_sm80, sgemm_fp32_64x64x16_s3_streamk_nt_sm80},
    {descriptor_sgemm_fp32_64x64x16_s3_streamk_tn_sm80, sgemm_fp32_64x64x16_s3_streamk_tn_sm80},
    {descriptor_sgemm_fp32_64x64x16_s3_streamk_tt_sm80, sgemm_fp32_64x64x16_s3_streamk_tt_sm80},
};

struct Case {
  std::int32_t m, n, k, sms;
  std::int64_t ldc_skew;  // beyond m
};

// A value that says from where it came, so small that sums are exact in any order.
float integer(std::mt19937& random) {
  return static_cast<float>(static_cast<int>(random() % 17) - 8);
}

// An operand as a caller has it. What completes the quads of its contiguous dimension is NaN, and nothing
// lies beyond.
struct Matrix {
  Matrix(std::int64_t extent, std::int64_t k, bool is_k_inner)
      : k_inner(is_k_inner),
        ld(round_up(is_k_inner ? k : extent, 4)),
        floats(static_cast<std::size_t>(ld * (is_k_inner ? extent : k))) {
    std::mt19937 random(static_cast<std::uint32_t>(extent + 5 * k));
    for (std::size_t i = 0; i < floats.size(); ++i) floats[i] = std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t i = 0; i < extent; ++i) floats[index(i, p)] = integer(random);
  }
  std::size_t index(std::int64_t i, std::int64_t p) const {
    return static_cast<std::size_t>(k_inner ? p + i * ld : i + p * ld);
  }
  float at(std::int64_t i, std::int64_t p) { return floats[index(i, p)]; }

  bool k_inner;
  std::int64_t ld;
  FencedFloats floats;
};

void check(const NamedKernel& kernel, const Case& c, float alpha, bool accumulate,
           const cuda_on_cpu::Machine& machine) {
  Matrix a(c.m, c.k, kernel.facts.a_k_inner), b(c.n, c.k, kernel.facts.b_k_inner);
  const std::int64_t ldc = c.m + c.ldc_skew;
  FencedFloats product(static_cast<std::size_t>(ldc * (c.n - 1) + c.m));
  std::mt19937 random(static_cast<std::uint32_t>(c.m + 3 * c.n + 7 * c.k));
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t i = 0; i < product.size(); ++i) product[i] = accumulate ? integer(random) : kNan;
  const std::vector<float> before(product.data(), product.data() + product.size());

  StreamKParams params{};
  params.gemm = {a.floats.data(), b.floats.data(),   product.data(), a.ld, b.ld, ldc, c.m, c.n, c.k,
                 alpha,           accumulate ? 1 : 0};
  deal_out(kernel.facts, c.sms, params);
  std::vector<float> partials(static_cast<std::size_t>(partial_floats(kernel.facts, params)), kNan);
  std::vector<std::uint32_t> tickets(static_cast<std::size_t>(ticket_count(kernel.facts, params)) + 1, 0);
  params.partials = partials.data();
  params.tickets = tickets.data();
  ASSERT_TRUE(cuda_on_cpu::run_grid(
      machine, static_cast<unsigned>(blocks_of(params)), static_cast<unsigned>(kernel.facts.threads),
      static_cast<std::size_t>(kernel.facts.shared_bytes), [&] { kernel.function(params); }));
  for (const std::uint32_t ticket : tickets) ASSERT_EQ(ticket, 0u) << "the next launch counts on it";
  for (std::int64_t j = 0; j < c.n; ++j)
    for (std::int64_t i = 0; i < ldc; ++i) {
      const auto at = static_cast<std::size_t>(i + j * ldc);
      if (at >= product.size()) break;
      float expected = before[at];
      if (i < c.m) {
        float sum = 0;
        for (std::int64_t p = 0; p < c.k; ++p) sum += a.at(i, p) * b.at(j, p);
        expected = alpha * (accumulate ? sum + before[at] : sum);
      }
      ASSERT_EQ(std::bit_cast<std::uint32_t>(product[at]), std::bit_cast<std::uint32_t>(expected))
          << kernel.facts.name << " at " << i << ',' << j;
    }
}

class StreamKOnCpu : public ::testing::TestWithParam<NamedKernel> {};

// Fewer tiles than SMs, more, as many; k from less than a stage to many; edges of every kind.
TEST_P(StreamKOnCpu, MultipliesExactlyHoweverTilesAreCut) {
  const KernelDescriptor& k = GetParam().facts;
  const int deep = k.tile_k * 11 + 5;
  for (const Case& c : {Case{1, 1, 1, 3, 0}, Case{k.tile_m + 1, k.tile_n - 1, deep, 3, 3},
                        Case{k.tile_m, k.tile_n, deep, 2, 0}, Case{3 * k.tile_m, k.tile_n, deep, 2, 1},
                        Case{7, 5, 3 * deep, 5, 1}}) {
    check(GetParam(), c, 1.0f, false, {});
    if (HasFatalFailure()) return;
  }
}

TEST_P(StreamKOnCpu, ScalesTheSumWithWhatWasThere) {
  const KernelDescriptor& k = GetParam().facts;
  check(GetParam(), {k.tile_m - 1, k.tile_n + 3, 9 * k.tile_k, 3, 1}, -1.5f, true, {});
}

TEST_P(StreamKOnCpu, NeedsNoLuckInTheOrderOfThreadsAndCopies) {
  using cuda_on_cpu::CopiesLand, cuda_on_cpu::ThreadOrder;
  const KernelDescriptor& k = GetParam().facts;
  for (const auto copies : {CopiesLand::at_once, CopiesLand::when_waited_for})
    for (const auto order : {ThreadOrder::backwards, ThreadOrder::by_warp}) {
      check(GetParam(), {k.tile_m, 2 * k.tile_n, 9 * k.tile_k, 3, 0}, 1.0f, false, {copies, order});
      if (HasFatalFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(All, StreamKOnCpu, ::testing::ValuesIn(kKernels),
                         [](const auto& kernel) { return std::string(kernel.param.facts.name); });

}  // namespace
}  // namespace gemmhoist::kernels::testing
