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
#include "kernels/registry.hpp"
#include "kernels/stream_k_choice.hpp"

// The kernels, as C++.
#include "kernels/sgemm_fp32_128x256x32_s3_streamk_nn_sm80.cu"
#include "kernels/sgemm_fp32_128x256x32_s3_streamk_nt_sm80.cu"
#include "kernels/sgemm_fp32_128x256x32_s3_streamk_tn_sm80.cu"
#include "kernels/sgemm_fp32_128x256x32_s3_streamk_tt_sm80.cu"
#include "kernels/sgemm_fp32_64x128x32_s2_streamk_nn_sm90a.cu"
#include "kernels/sgemm_fp32_64x128x32_s2_streamk_nt_sm90a.cu"
#include "kernels/sgemm_fp32_64x128x32_s2_streamk_tn_sm90a.cu"
#include "kernels/sgemm_fp32_64x128x32_s2_streamk_tt_sm90a.cu"
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
    const auto cut = static_cast<std::int32_t>(ticket_count(kernel, p));
    const std::int64_t all = std::int64_t{cut} * p.iterations;
    ASSERT_EQ(cut == 0, p.workers == 0);
    if (cut == 0) continue;
    ASSERT_EQ(piece_begin(p, 0), 0);
    ASSERT_EQ(piece_begin(p, p.workers), all);
    for (std::int32_t w = 0; w < p.workers; ++w) {
      const std::int64_t begin = piece_begin(p, w), end = piece_begin(p, w + 1);
      ASSERT_LT(begin, end);
      ASSERT_LE((end - 1) / p.iterations - begin / p.iterations, 1);
      ASSERT_EQ(tile_of_piece(p, w, cut), begin / p.iterations);
      for (std::int64_t tile = begin / p.iterations; tile <= (end - 1) / p.iterations; ++tile) {
        const auto t = static_cast<std::int32_t>(tile);
        ASSERT_LE(first_worker_of(p, t, cut), w);
        ASSERT_GE(last_worker_of(p, t, cut), w);
      }
    }
    for (std::int32_t t = 0; t < cut; ++t) {
      const std::int64_t begin = std::int64_t{t} * p.iterations, end = begin + p.iterations;
      const std::int32_t first = first_worker_of(p, t, cut), last = last_worker_of(p, t, cut);
      ASSERT_LE(piece_begin(p, first), begin);
      ASSERT_GT(piece_begin(p, first + 1), begin);
      ASSERT_LT(piece_begin(p, last), end);
      ASSERT_GE(piece_begin(p, last + 1), end);
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
  EXPECT_EQ(dealt(descriptor_sgemm_fp32_64x64x16_s3_streamk_nt_sm80, 64, 64, 31 * 16, 132).workers, 1);
  // Parts that end where tiles do, where that makes them hardly longer: 32 tiles in 4 parts each, for 132
  // SMs.
  EXPECT_EQ(dealt(kernel, 1024, 1024, 1024, 132).workers, 128);
  EXPECT_EQ(dealt(kernel, 2048, 2048, 4096, 132).workers, 132);
}

struct NamedKernel {
  const KernelDescriptor& facts;
  void (*function)(StreamKParams);
};
const NamedKernel kKernels[] = {
    {descriptor_sgemm_fp32_128x256x32_s3_streamk_nn_sm80, sgemm_fp32_128x256x32_s3_streamk_nn_sm80},
    {descriptor_sgemm_fp32_128x256x32_s3_streamk_nt_sm80, sgemm_fp32_128x256x32_s3_streamk_nt_sm80},
    {descriptor_sgemm_fp32_128x256x32_s3_streamk_tn_sm80, sgemm_fp32_128x256x32_s3_streamk_tn_sm80},
    {descriptor_sgemm_fp32_128x256x32_s3_streamk_tt_sm80, sgemm_fp32_128x256x32_s3_streamk_tt_sm80},
    {descriptor_sgemm_fp32_64x128x32_s2_streamk_nn_sm90a, sgemm_fp32_64x128x32_s2_streamk_nn_sm90a},
    {descriptor_sgemm_fp32_64x128x32_s2_streamk_nt_sm90a, sgemm_fp32_64x128x32_s2_streamk_nt_sm90a},
    {descriptor_sgemm_fp32_64x128x32_s2_streamk_tn_sm90a, sgemm_fp32_64x128x32_s2_streamk_tn_sm90a},
    {descriptor_sgemm_fp32_64x128x32_s2_streamk_tt_sm90a, sgemm_fp32_64x128x32_s2_streamk_tt_sm90a},
    {descriptor_sgemm_fp32_64x64x16_s3_streamk_nn_sm80, sgemm_fp32_64x64x16_s3_streamk_nn_sm80},
    {descriptor_sgemm_fp32_64x64x16_s3_streamk_nt_sm80, sgemm_fp32_64x64x16_s3_streamk_nt_sm80},
    {descriptor_sgemm_fp32_64x64x16_s3_streamk_tn_sm80, sgemm_fp32_64x64x16_s3_streamk_tn_sm80},
    {descriptor_sgemm_fp32_64x64x16_s3_streamk_tt_sm80, sgemm_fp32_64x64x16_s3_streamk_tt_sm80},
};

// By what was measured on an H200: bench/results/2026-11-30-fp32-shapes-2.md.
TEST(StreamK, ChoosesByShapeAndByHowOperandsLie) {
  std::vector<const KernelDescriptor*> kernels;
  for (const NamedKernel& kernel : kKernels) kernels.push_back(&kernel.facts);
  const auto chosen = [&](std::int32_t m, std::int32_t n, std::int32_t k, OperandLayout a, OperandLayout b) {
    GemmKernelParams gemm{};
    gemm.m = m, gemm.n = n, gemm.k = k;
    const std::string name = choose_stream_k(kernels, gemm, a, b, {132, 53.3e12})->name;
    return name.substr(11, name.find("_sm") - 11);  // without what all share
  };
  constexpr OperandLayout kOuter{false, true}, kInner{true, true}, kOdd{false, false}, kOddInner{true, false};
  EXPECT_EQ(chosen(8192, 8192, 8192, kOuter, kOuter), "128x256x32_s3_streamk_nt");
  EXPECT_EQ(chosen(512, 512, 65536, kInner, kOuter), "128x256x32_s3_streamk_tt");
  EXPECT_EQ(chosen(128, 16384, 4096, kInner, kInner), "128x256x32_s3_streamk_tn");
  EXPECT_EQ(chosen(16384, 128, 4096, kOuter, kOuter), "64x128x32_s2_streamk_nt");
  EXPECT_EQ(chosen(1024, 1024, 1024, kOuter, kInner), "64x128x32_s2_streamk_nn");
  EXPECT_EQ(chosen(512, 512, 512, kInner, kInner), "64x64x16_s3_streamk_tn");
  // The tile between copies what is K-outer by 16 bytes; what has k contiguous may lie anywhere for any.
  EXPECT_EQ(chosen(1023, 1023, 1023, kOdd, kOdd), "64x64x16_s3_streamk_nt");
  EXPECT_EQ(chosen(1023, 1023, 1023, kOddInner, kOddInner), "64x128x32_s2_streamk_tn");
  EXPECT_EQ(chosen(4097, 4095, 4099, kOdd, kOddInner), "128x256x32_s3_streamk_nn");
  EXPECT_EQ(choose_stream_k({}, GemmKernelParams{}, kOuter, kOuter, {132, 53.3e12}), nullptr);
}

TEST(StreamK, EveryLayoutAndAlignmentIsServedFromSm80On) {
  for (const OperandLayout a : {OperandLayout{false, false}, OperandLayout{true, false}})
    for (const OperandLayout b : {OperandLayout{false, false}, OperandLayout{true, false}}) {
      int served = 0;
      for (const KernelDescriptor& kernel : known()) served += serves(kernel, a, b) && kernel.min_arch == 80;
      EXPECT_EQ(served, 2) << a.k_inner << b.k_inner;
    }
}

struct Case {
  std::int32_t m, n, k, sms;
  std::int64_t ldc_skew;  // beyond m
};

// So small that sums are exact in any order.
float integer(std::mt19937& random) {
  return static_cast<float>(static_cast<int>(random() % 17) - 8);
}

// An operand as a caller has it. What completes the quads of its contiguous dimension is NaN, and nothing
// lies beyond.
struct Matrix {
  // What a kernel promises to read: at multiples of 16 bytes, or anywhere.
  Matrix(std::int64_t extent, std::int64_t k, bool is_k_inner, bool anywhere)
      : k_inner(is_k_inner),
        ld(anywhere ? (is_k_inner ? k : extent) + 1 : round_up(is_k_inner ? k : extent, 4)),
        skew(anywhere ? 3 : 0),
        floats(static_cast<std::size_t>(skew + ld * ((is_k_inner ? extent : k) - 1) +
                                        (anywhere ? is_k_inner ? k : extent : ld))) {
    std::mt19937 random(static_cast<std::uint32_t>(extent + 5 * k));
    for (std::size_t i = 0; i < floats.size(); ++i) floats[i] = std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t i = 0; i < extent; ++i) floats[index(i, p)] = integer(random);
  }
  std::size_t index(std::int64_t i, std::int64_t p) const {
    return static_cast<std::size_t>(skew + (k_inner ? p + i * ld : i + p * ld));
  }
  const float* data() { return floats.data() + skew; }
  float at(std::int64_t i, std::int64_t p) { return floats[index(i, p)]; }

  bool k_inner;
  std::int64_t ld, skew;
  FencedFloats floats;
};

void check(const NamedKernel& kernel, const Case& c, float alpha, bool accumulate,
           const cuda_on_cpu::Machine& machine) {
  const KernelDescriptor& facts = kernel.facts;
  Matrix a(c.m, c.k, facts.a_k_inner, facts.a_k_inner || facts.any_alignment);
  Matrix b(c.n, c.k, facts.b_k_inner, facts.b_k_inner || facts.any_alignment);
  const std::int64_t ldc = c.m + c.ldc_skew;
  FencedFloats product(static_cast<std::size_t>(ldc * (c.n - 1) + c.m));
  std::mt19937 random(static_cast<std::uint32_t>(c.m + 3 * c.n + 7 * c.k));
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t i = 0; i < product.size(); ++i) product[i] = accumulate ? integer(random) : kNan;
  const std::vector<float> before(product.data(), product.data() + product.size());

  StreamKParams params{};
  params.gemm = {a.data(), b.data(), product.data(),    a.ld, b.ld, ldc, c.m, c.n,
                 c.k,      alpha,    accumulate ? 1 : 0};
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
  for (const Case& c :
       {Case{1, 1, 1, 3, 0}, Case{k.tile_m + 1, k.tile_n - 1, deep, 3, 3},
        Case{k.tile_m - 1, 2 * k.tile_n - 3, deep, 3, 2}, Case{k.tile_m, k.tile_n, deep, 2, 0},
        Case{3 * k.tile_m, k.tile_n, deep, 2, 1}, Case{7, 5, 3 * deep, 5, 1}}) {
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
