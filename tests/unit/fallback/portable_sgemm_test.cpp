#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "fallback/calls.hpp"
#include "fallback/fallback.hpp"
#include "unit/fallback/product_oracle.hpp"

namespace gemmhoist::fallback {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr Transpose kBoth[] = {Transpose::no, Transpose::yes};

// Round the tile (16 x 6) and the slice (16): one less, equal, one more, several.
TEST(PortableSgemm, RightForEveryEdgeOfTheTile) {
  for (Transpose ta : kBoth)
    for (Transpose tb : kBoth)
      for (std::int64_t m : {1, 15, 16, 17, 33})
        for (std::int64_t n : {1, 5, 6, 7, 13})
          for (std::int64_t k : {1, 15, 16, 17, 50})
            for (float beta : {0.0f, -0.0f, 1.0f, 0.5f}) {
              Problem problem(ta, tb, m, n, k, 1.25f, beta);
              std::vector<float> result = problem.c;
              GemmCall call = problem.call;
              call.c = result.data();
              portable_sgemm(call);
              ASSERT_EQ(problem.wrong(result), 0) << to_char(ta) << to_char(tb) << m << 'x' << n << 'x' << k;
            }
}

TEST(PortableSgemm, BetaZeroNeverReadsC) {
  for (float beta : {0.0f, -0.0f}) {
    Problem problem(Transpose::no, Transpose::yes, 19, 8, 21, 1, beta);
    std::vector<float> result(problem.c.size(), kNan);
    for (std::size_t i = 0; i < result.size(); ++i)
      if (problem.c[i] == 12345) result[i] = 12345;
    GemmCall call = problem.call;
    call.c = result.data();
    portable_sgemm(call);
    EXPECT_EQ(problem.wrong(result), 0);
  }
}

TEST(PortableSgemm, AlphaZeroOrNoDepthOnlyScales) {
  for (const bool no_depth : {false, true}) {
    float c[6] = {2, 2, 9, kNan, 2, 9};
    GemmCall call;
    call.m = 2;
    call.n = 2;
    call.k = no_depth ? 0 : 5;
    call.alpha = no_depth ? 1.0f : 0.0f;
    call.lda = call.ldb = 5;
    call.ldc = 3;
    call.c = c;
    call.beta = 3;
    portable_sgemm(call);  // A and B are null
    EXPECT_EQ(c[0], 6);
    EXPECT_EQ(c[2], 9);
    EXPECT_TRUE(std::isnan(c[3]));
    call.beta = 1;
    const float before[6] = {-0.0f, 1e-45f, 9, kNan, 7, 9};
    std::memcpy(c, before, sizeof c);
    portable_sgemm(call);
    EXPECT_EQ(std::memcmp(c, before, sizeof c), 0);
    call.beta = 0;
    portable_sgemm(call);
    EXPECT_EQ(c[3], 0);
    EXPECT_EQ(c[5], 9);
  }
}

TEST(PortableSgemm, NanAndInfComeOutWhereTheyBelong) {
  constexpr std::int64_t m = 20, n = 9, k = 30;
  std::vector<float> a(m * k, 0.0f), b(k * n, 1.0f), c(m * n);
  b[7 + 2 * k] = kInf;
  b[11 + 5 * k] = kNan;
  portable_sgemm({Transpose::no, Transpose::no, m, n, k, 1, a.data(), m, b.data(), k, 0, c.data(), m});
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < m; ++i) {
      const float value = c[static_cast<std::size_t>(i + j * m)];
      if (j == 2 || j == 5) {
        EXPECT_TRUE(std::isnan(value));
      } else {
        EXPECT_EQ(value, 0);
      }
    }
  for (const bool in_alpha : {true, false}) {
    portable_sgemm({Transpose::no, Transpose::no, m, n, k, in_alpha ? kNan : 1, a.data(), m, b.data(), k,
                    in_alpha ? 0 : kNan, c.data(), m});
    for (float value : c) EXPECT_TRUE(std::isnan(value));
  }
}

// alpha scales the sum, not the terms: these overflow one by one.
TEST(PortableSgemm, AlphaScalesTheSum) {
  const float a[2] = {1e30f, -1e30f}, b[2] = {1, 1};
  float c = 0;
  portable_sgemm({Transpose::no, Transpose::no, 1, 1, 2, 1e20f, a, 1, b, 2, 0, &c, 1});
  EXPECT_EQ(c, 0);
}

// The store computes alpha * sum + beta * C with one rounding: against the C library's own fused
// multiply-add, over magnitudes from subnormal to overflow.
TEST(PortableSgemm, StoreIsAFusedMultiplyAdd) {
  std::mt19937 engine(3);
  std::uniform_real_distribution<float> mantissa(-2, 2);
  std::uniform_int_distribution<int> exponent(-149, 127);
  const auto any = [&] { return std::ldexp(mantissa(engine), exponent(engine)); };
  for (int i = 0; i < 300000; ++i) {
    const float product = any(), one = 1;
    const float beta = any();
    // Every other time an addend that nearly cancels or ties.
    const float old = i % 2 == 0 ? any() : static_cast<float>(-double{product} / beta);
    float c = old;
    portable_sgemm({Transpose::no, Transpose::no, 1, 1, 1, 1, &product, 1, &one, 1, beta, &c, 1});
    const float expected = beta == 0 ? product : std::fmaf(beta, old, product);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(c));
    } else {
      ASSERT_EQ(std::memcmp(&c, &expected, sizeof c), 0) << beta << " * " << old << " + " << product;
    }
  }
}

// 1 + j 2^-23 times 1: every bit of A comes back, subnormals too.
TEST(PortableSgemm, KeepsBits) {
  float a[64];
  for (int j = 0; j < 64; ++j)
    a[j] = j < 32 ? 1 + static_cast<float>(j) * 0x1p-23f : static_cast<float>(j) * 0x1p-149f;
  const float one = 1;
  float c[64];
  portable_sgemm({Transpose::no, Transpose::no, 64, 1, 1, 1, a, 64, &one, 1, 0, c, 64});
  EXPECT_EQ(std::memcmp(a, c, sizeof a), 0);
}

TEST(MultiplyInBlocks, AppliesBetaOnceAndCoversC) {
  for (Transpose ta : kBoth)
    for (Transpose tb : kBoth)
      for (std::int64_t block : {1, 4, 7, 100}) {
        Problem problem(ta, tb, 9, 8, 11, -0.75f, 0.5f);
        std::vector<float> result = problem.c;
        GemmCall call = problem.call;
        call.c = result.data();
        std::int64_t largest = 0;
        multiply_in_blocks(
            call, block,
            [](const GemmCall& part, void* context) {
              auto& seen = *static_cast<std::int64_t*>(context);
              seen = std::max({seen, part.m, part.n, part.k});
              portable_sgemm(part);
            },
            &largest);
        EXPECT_EQ(problem.wrong(result), 0) << block;
        EXPECT_EQ(largest, std::min<std::int64_t>(block, 11));
      }
}

}  // namespace
}  // namespace gemmhoist::fallback
