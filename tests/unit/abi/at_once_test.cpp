// What goes to the provider from an entry's own registers is exactly what the rules and the passes would have
// sent there: every small legal product, counted, and nothing else.
#include "abi/at_once.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <limits>
#include <thread>

#include "fallback/calls.hpp"

namespace gemmhoist::abi {
namespace {

using dispatch::SmallProducts;
using fallback::Provider;
using fallback::Spelling;
using observe::Counter;

void provider_of_test() {}

class AtOnce : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    provider_.function = reinterpret_cast<void*>(provider_of_test);
    provider_.arguments_ilp64 = GetParam();
    for (auto& published : fallback::detail::known.published) published.store(&provider_);
    dispatch::detail::small_products.store(SmallProducts::unexamined);
    fallback::detail::known.guards_in_use.store(false);
    observe::add(Counter::calls_illegal);  // the first addition of a thread is no quick one
    observe::reset_counters();
  }
  void TearDown() override {
    for (auto& published : fallback::detail::known.published) published.store(nullptr);
    dispatch::detail::small_products.store(SmallProducts::not_known);
    fallback::detail::known.guards_in_use.store(false);
  }

  // As a 32-bit program leaves them in registers and stack slots: with rubbish above.
  std::int64_t passed(std::int64_t value) const {
    constexpr std::uint64_t kRubbish = 0xdeadbeef00000000;
    if (provider_.arguments_ilp64) return value;
    return static_cast<std::int64_t>(kRubbish | static_cast<std::uint32_t>(value));
  }

  bool cblas_goes(int order, int trans_a, int trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                  float alpha, std::int64_t lda, std::int64_t ldb, std::int64_t ldc) const {
    const CblasStack stack{nullptr, passed(lda), nullptr, passed(ldb), nullptr, passed(ldc)};
    const CblasFunction function = cblas_at_once(Spelling::cblas_sgemm, order, trans_a, trans_b, passed(m),
                                                 passed(n), passed(k), alpha, stack);
    EXPECT_TRUE(function == nullptr || reinterpret_cast<void*>(function) == provider_.function);
    return function != nullptr;
  }

  static bool expected(const CblasArguments& raw) {
    GemmCall call;
    return normalise(raw, call) == CallClass::product && dispatch::is_too_small(call.m, call.n, call.k);
  }

  Provider provider_;
};

TEST_P(AtOnce, CblasAsByTheRules) {
  std::uint64_t went = 0, stayed = 0;
  for (const int order : {0, 101, 102, 103})
    for (const int ta : {0, 110, 111, 112, 113, 114})
      for (const int tb : {111, 112, 113, -1})
        for (const std::int64_t m : {-1, 0, 1, 2, 5})
          for (const std::int64_t n : {-2, 0, 1, 4})
            for (const std::int64_t k : {-1, 0, 1, 3})
              for (const std::int64_t lda : {-1, 0, 1, 2, 3, 5})
                for (const std::int64_t ldb : {0, 1, 3, 4})
                  for (const std::int64_t ldc : {0, 1, 2, 4, 5}) {
                    const float alpha = ldc == 2 ? 0.0F : ldc == 1 ? -0.0F : 1.5F;
                    const CblasArguments raw{order,   ta,  tb,      m,   n, k,       alpha,
                                             nullptr, lda, nullptr, ldb, 0, nullptr, ldc};
                    const bool goes = cblas_goes(order, ta, tb, m, n, k, alpha, lda, ldb, ldc);
                    ASSERT_EQ(goes, expected(raw))
                        << order << ' ' << ta << ' ' << tb << ' ' << m << ' ' << n << ' ' << k << ' ' << lda
                        << ' ' << ldb << ' ' << ldc << ' ' << alpha;
                    ++(goes ? went : stayed);
                  }
  EXPECT_GT(went, 1000U);
  EXPECT_GT(stayed, 1000U);
  EXPECT_EQ(observe::total(Counter::calls_cblas), went);
  EXPECT_EQ(observe::total(Counter::calls_cpu), went);
  EXPECT_EQ(observe::total(Counter::calls_fortran), 0U);
}

TEST_P(AtOnce, OnBothSidesOfTheThreshold) {
  constexpr std::int64_t kVolume = dispatch::kSmallestVolume,
                         kMost = std::numeric_limits<std::int32_t>::max();
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{kVolume - 1, 1, 1},
                                {kVolume, 1, 1},
                                {1, kVolume - 1, 1},
                                {1, kVolume, 1},
                                {1, 1, kVolume - 1},
                                {1, 1, kVolume},
                                {125, 125, 127},
                                {126, 126, 126},
                                {1000, 1999, 1},
                                {1000, 2000, 1},
                                {2, 1000, 999},
                                {kMost, kMost, kMost},
                                {1 << 30, 1 << 30, 1 << 4},
                                {1 << 16, 1 << 16, 1},
                                {1 << 22, 1 << 21, 1 << 21}}) {
    const CblasArguments raw{102, 111, 111, m, n, k, 1, nullptr, m, nullptr, k, 0, nullptr, m};
    EXPECT_EQ(cblas_goes(102, 111, 111, m, n, k, 1, m, k, m), expected(raw)) << m << ' ' << n << ' ' << k;
  }
}

TEST_P(AtOnce, WhatAlphaIs) {
  const auto goes = [&](float alpha) { return cblas_goes(102, 111, 111, 3, 3, 3, alpha, 3, 3, 3); };
  EXPECT_FALSE(goes(0.0F));
  EXPECT_FALSE(goes(-0.0F));
  EXPECT_TRUE(goes(std::numeric_limits<float>::quiet_NaN()));
  EXPECT_TRUE(goes(std::numeric_limits<float>::denorm_min()));
  EXPECT_TRUE(goes(-std::numeric_limits<float>::denorm_min()));
  EXPECT_TRUE(goes(std::numeric_limits<float>::infinity()));
}

TEST_P(AtOnce, Fortran) {
  std::uint64_t went = 0;
  for (const char ta : {'N', 'n', 'T', 't', 'C', 'c', 'R', 'x', '\0'})
    for (const char tb : {'N', 'c', 'q'})
      for (const std::int64_t m : {-1, 0, 2, 1000})
        for (const std::int64_t n : {0, 3, 2000})
          for (const std::int64_t k : {0, 1, 4})
            for (const std::int64_t lda : {0, 2, 4, 1000})
              for (const std::int64_t ldc : {1, 1000}) {
                const float alpha = 2;
                const std::int64_t ldb = 2000, x[] = {passed(m),   passed(n),   passed(k),
                                                      passed(lda), passed(ldb), passed(ldc)};
                const FortranStack stack{nullptr, &x[3], nullptr, &x[4], nullptr, nullptr, &x[5]};
                const bool goes = fortran_at_once(Spelling::sgemm_, &ta, &tb, &x[0], &x[1], &x[2], &alpha,
                                                  stack) != nullptr;
                const FortranArguments raw{ta,  tb,      m,   n, k,       alpha, nullptr,
                                           lda, nullptr, ldb, 0, nullptr, ldc};
                GemmCall call;
                ASSERT_EQ(goes, normalise(raw, call) == CallClass::product && dispatch::is_too_small(m, n, k))
                    << ta << tb << ' ' << m << ' ' << n << ' ' << k << ' ' << lda << ' ' << ldc;
                went += goes;
              }
  EXPECT_GT(went, 100U);
  EXPECT_EQ(observe::total(Counter::calls_fortran), went);
  EXPECT_EQ(observe::total(Counter::calls_cpu), went);
}

TEST_P(AtOnce, NothingWhereSmallProductsAreLookedAt) {
  const auto goes = [&] { return cblas_goes(102, 111, 111, 3, 3, 3, 1, 3, 3, 3); };
  EXPECT_TRUE(goes());
  for (const SmallProducts other : {SmallProducts::not_known, SmallProducts::examined}) {
    dispatch::detail::small_products.store(other);
    EXPECT_FALSE(goes());
  }
  dispatch::detail::small_products.store(SmallProducts::unexamined);
  fallback::detail::known.guards_in_use.store(true);  // a BLAS that calls the entries itself
  EXPECT_FALSE(goes());
  fallback::detail::known.guards_in_use.store(false);
  fallback::detail::known.published[static_cast<int>(Spelling::cblas_sgemm)].store(nullptr);
  EXPECT_FALSE(goes());
  EXPECT_EQ(observe::total(Counter::calls_cblas), 1U);
}

// One thread finds a BLAS that calls the entries itself, and another multiplies at that very moment: it sees
// no provider yet, or the guards with it. On a CPU each: taking turns on one they would not meet.
TEST_P(AtOnce, GuardsAreSeenWithTheProviderThatNeedsThem) {
  constexpr int kRounds = 100000;
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one CPU";
  int cpus[2] = {-1, -1};
  for (int cpu = 0; cpus[1] < 0; ++cpu)
    if (CPU_ISSET(cpu, &all)) cpus[cpus[0] < 0 ? 0 : 1] = cpu;
  const auto run_on = [](int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  };
  auto& published = fallback::detail::known.published[static_cast<int>(Spelling::cblas_sgemm)];
  std::atomic<int> begun{0}, ended{0};
  int unguarded = 0;
  std::thread caller([&] {
    run_on(cpus[1]);
    for (int round = 1; round <= kRounds; ++round) {
      for (int i = 0; begun.load() != round; ++i)
        if (i % 1024 == 1023) std::this_thread::yield();
      while (fallback::known_provider(Spelling::cblas_sgemm) == nullptr)
        unguarded += provider_at_once(Spelling::cblas_sgemm) != nullptr;
      ended.store(round);
    }
  });
  run_on(cpus[0]);
  for (int round = 1; round <= kRounds; ++round) {
    fallback::detail::known.guards_in_use.store(false);
    published.store(nullptr);
    begun.store(round);
    for (int i = 0; i < 100 + round % 400; ++i)
      asm volatile("");  // the caller comes at another moment each time
    fallback::put_guards_in_use();
    published.store(&provider_, std::memory_order_release);
    for (int i = 0; ended.load() != round; ++i)
      if (i % 1024 == 1023) std::this_thread::yield();
  }
  caller.join();
  EXPECT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(unguarded, 0);
}

INSTANTIATE_TEST_SUITE_P(Integers, AtOnce, testing::Bool(),
                         [](const auto& which) { return which.param ? "Of64Bits" : "Of32Bits"; });

}  // namespace
}  // namespace gemmhoist::abi
