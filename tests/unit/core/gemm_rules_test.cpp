// The BLAS rules against an oracle written from the reference's documentation: for a row-major call it speaks
// of rows and columns of the stored matrices, and never exchanges A and B as the code does.
#include "core/gemm_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace gemmhoist {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Oracle {
  bool row_major, known_order, known_a, known_b, transposed_a, transposed_b;
  std::int64_t m, n, k, lda, ldb, ldc;
  float alpha;

  CallClass answer() const {
    if (!known_order || !known_a || !known_b || std::min({m, n, k}) < 0) return CallClass::illegal;
    const std::int64_t rows_a = transposed_a ? k : m, columns_a = transposed_a ? m : k;
    const std::int64_t rows_b = transposed_b ? n : k, columns_b = transposed_b ? k : n;
    const auto stride = [this](std::int64_t rows, std::int64_t columns) {
      return std::max<std::int64_t>(1, row_major ? columns : rows);
    };
    if (lda < stride(rows_a, columns_a) || ldb < stride(rows_b, columns_b) || ldc < stride(m, n)) {
      return CallClass::illegal;
    }
    if (std::min({m, n, k}) == 0) return CallClass::trivial;
    return std::fpclassify(alpha) == FP_ZERO ? CallClass::trivial : CallClass::product;
  }
};

const std::int64_t kExtents[] = {-1, 0, 1, 2, 5};
const std::int64_t kStrides[] = {-3, 0, 1, 2, 4, 5, 6};

TEST(GemmRules, CblasAgreesWithTheReferenceOnAGrid) {
  float a = 0, b = 0, c = 0;
  long seen[3] = {};
  for (int order : {0, 101, 102, 103}) {
    for (int ta : {110, 111, 112, 113, 114}) {
      for (int tb : {0, 111, 112, 113}) {
        for (auto m : kExtents)
          for (auto n : kExtents)
            for (auto k : kExtents)
              for (auto lda : kStrides)
                for (auto ldb : kStrides)
                  for (auto ldc : kStrides) {
                    const float alpha = lda == 6 ? 0.0f : 1.5f;
                    const CblasArguments raw{order, ta, tb, m, n, k, alpha, &a, lda, &b, ldb, 0.5f, &c, ldc};
                    GemmCall call;
                    const CallClass got = normalise(raw, call);
                    const Oracle oracle{order == 101,
                                        order == 101 || order == 102,
                                        ta >= 111 && ta <= 113,
                                        tb >= 111 && tb <= 113,
                                        ta != 111,
                                        tb != 111,
                                        m,
                                        n,
                                        k,
                                        lda,
                                        ldb,
                                        ldc,
                                        alpha};
                    ASSERT_EQ(static_cast<int>(got), static_cast<int>(oracle.answer()))
                        << order << ' ' << ta << ' ' << tb << ' ' << m << ' ' << n << ' ' << k << ' ' << lda
                        << ' ' << ldb << ' ' << ldc;
                    ++seen[static_cast<int>(got)];
                  }
      }
    }
  }
  for (long count : seen) EXPECT_GT(count, 1000);  // the grid reaches every class
}

TEST(GemmRules, FortranAgreesWithTheReferenceOnAGrid) {
  float a = 0, b = 0, c = 0;
  const std::string no = "Nn", yes = "TtCc";
  for (char ta : std::string("NnTtCcRrXH 1")) {
    for (char tb : std::string("nTcRrQ")) {
      for (auto m : kExtents)
        for (auto n : kExtents)
          for (auto k : kExtents)
            for (auto lda : kStrides)
              for (auto ldb : kStrides)
                for (auto ldc : kStrides) {
                  const float alpha = ldb == 6 ? -0.0f : -1.0f;
                  const FortranArguments raw{ta, tb, m, n, k, alpha, &a, lda, &b, ldb, 0.5f, &c, ldc};
                  GemmCall call;
                  const auto is_yes = [&](char l) { return yes.find(l) != std::string::npos; };
                  const auto is_known = [&](char l) { return is_yes(l) || no.find(l) != std::string::npos; };
                  const Oracle oracle{false, true, is_known(ta), is_known(tb), is_yes(ta), is_yes(tb), m,
                                      n,     k,    lda,          ldb,          ldc,        alpha};
                  ASSERT_EQ(static_cast<int>(normalise(raw, call)), static_cast<int>(oracle.answer()))
                      << ta << tb << ' ' << m << ' ' << n << ' ' << k << ' ' << lda << ' ' << ldb << ' '
                      << ldc;
                }
    }
  }
}

// The canonical call, evaluated by columns, writes what the raw call means.
TEST(GemmRules, CanonicalCallIsTheSameProduct) {
  constexpr std::int64_t m = 3, n = 4, k = 2, ld = 7;
  float a[64], b[64];
  for (int i = 0; i < 64; ++i) {
    a[i] = static_cast<float>(i % 11) - 4;
    b[i] = static_cast<float>(i % 7) - 2;
  }
  for (int order : {101, 102})
    for (int ta : {111, 112, 113})
      for (int tb : {111, 112, 113}) {
        float c[64] = {}, expected[64] = {};
        const auto at = [&](const float* x, bool transposed, std::int64_t i, std::int64_t j) {
          if (transposed) std::swap(i, j);
          return order == 101 ? x[i * ld + j] : x[i + j * ld];
        };
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            float sum = 0;
            for (std::int64_t l = 0; l < k; ++l) sum += at(a, ta != 111, i, l) * at(b, tb != 111, l, j);
            expected[order == 101 ? i * ld + j : i + j * ld] = sum;
          }
        GemmCall call;
        ASSERT_EQ(normalise(CblasArguments{order, ta, tb, m, n, k, 1, a, ld, b, ld, 0, c, ld}, call),
                  CallClass::product);
        for (std::int64_t i = 0; i < call.m; ++i)
          for (std::int64_t j = 0; j < call.n; ++j)
            for (std::int64_t l = 0; l < call.k; ++l) {
              const float x =
                  call.trans_a == Transpose::no ? call.a[i + l * call.lda] : call.a[l + i * call.lda];
              const float y =
                  call.trans_b == Transpose::no ? call.b[l + j * call.ldb] : call.b[j + l * call.ldb];
              call.c[i + j * call.ldc] += x * y;
            }
        for (int i = 0; i < 64; ++i) ASSERT_EQ(c[i], expected[i]) << order << ' ' << ta << ' ' << tb;
      }
}

TEST(GemmRules, KeepsScalarsAndWideExtents) {
  const std::int64_t big = std::int64_t{1} << 40;
  GemmCall call;
  const float* a = reinterpret_cast<const float*>(0x1000);
  const float* b = reinterpret_cast<const float*>(0x2000);
  float* c = reinterpret_cast<float*>(0x3000);  // never read: these addresses hold nothing
  const CblasArguments row{101, 111, 112, big, 3, big + 1, 2.5f, a, big + 2, b, big + 3, -0.0f, c, 5};
  ASSERT_EQ(normalise(row, call), CallClass::product);
  EXPECT_EQ(call.m, 3);
  EXPECT_EQ(call.n, big);
  EXPECT_EQ(call.k, big + 1);
  EXPECT_EQ(call.a, b);
  EXPECT_EQ(call.lda, big + 3);
  EXPECT_EQ(call.b, a);
  EXPECT_EQ(call.ldb, big + 2);
  EXPECT_EQ(call.trans_a, Transpose::yes);
  EXPECT_EQ(call.trans_b, Transpose::no);
  EXPECT_EQ(call.c, c);
  EXPECT_EQ(call.ldc, 5);
  EXPECT_EQ(call.alpha, 2.5f);
  EXPECT_TRUE(std::signbit(call.beta));
}

TEST(GemmRules, NanIsNoZero) {
  GemmCall call;
  float x = 0;
  EXPECT_EQ(normalise(FortranArguments{'N', 'N', 1, 1, 1, kNan, &x, 1, &x, 1, kNan, &x, 1}, call),
            CallClass::product);
  EXPECT_EQ(normalise(CblasArguments{101, 111, 111, 1, 1, 1, kNan, &x, 1, &x, 1, 0, &x, 1}, call),
            CallClass::product);
  EXPECT_EQ(normalise(FortranArguments{'N', 'N', 1, 1, 0, kNan, &x, 1, &x, 1, kNan, &x, 1}, call),
            CallClass::trivial);
}

}  // namespace
}  // namespace gemmhoist
