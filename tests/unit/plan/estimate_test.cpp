#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <random>
#include <string>

#include "machines.hpp"
#include "plan/plan.hpp"

namespace gemmhoist::plan::testing {
namespace {

MachineProfile small_machine() {
  MachineProfile p;  // 20 GB/s, 8 TFLOP/s
  p.sm_count = 40;
  return p;
}

// Of random products worth a decision: nearly all within 25 %, the smallest within 45 %.
TEST(Estimate, IsNearThePlansPrediction) {
  const MachineProfile machines[] = {h200(), model_machine(), small_machine()};
  std::mt19937_64 random(11);
  const auto extent = [&](double low, double high) {
    return static_cast<std::int64_t>(std::pow(10.0, std::uniform_real_distribution<>(low, high)(random)));
  };
  int within = 0, all = 0;
  while (all < 1000) {
    PlanInput in = product(extent(2, 4.3), extent(2, 4.3), extent(1.5, 4.3), machines[random() % 3]);
    in.beta_zero = random() % 2 != 0;
    in.trans_a = random() % 2 != 0 ? Transpose::yes : Transpose::no;
    in.trans_b = random() % 2 != 0 ? Transpose::yes : Transpose::no;
    in.a_pinned = random() % 4 == 0;
    in.precision = static_cast<Precision>(random() % 3);
    if (random() % 4 == 0) in.device_bytes = std::int64_t{128} << 20;
    if (2.0 * static_cast<double>(in.m) * static_cast<double>(in.n) * static_cast<double>(in.k) < 4e6)
      continue;
    Plan plan;
    ASSERT_EQ(make_plan(in, plan), PlanError::none);
    const double ratio = estimate_seconds(in) / plan.predicted_s;
    ++all;
    within += ratio > 0.75 && ratio < 1.25;
    const std::string what =
        std::to_string(in.m) + " x " + std::to_string(in.n) + " x " + std::to_string(in.k) + ", machine " +
        std::to_string(in.profile - machines) + ", device " + std::to_string(in.device_bytes >> 20) +
        " MiB, chunk " + std::to_string(plan.chunk_bytes) + ", steps " + std::to_string(plan.steps.size());
    EXPECT_GT(ratio, 0.6) << what;
    EXPECT_LT(ratio, 1.45) << what;
  }
  EXPECT_GE(within, all * 98 / 100);
}

TEST(Estimate, WithoutAPlanItIsNever) {
  const MachineProfile profile = h200();
  PlanInput in = product(1000, 1000, 1000, profile);
  in.device_bytes = 1000;
  EXPECT_GT(estimate_seconds(in), 1e20);
  in = product(1000, 1000, 1000, profile);
  in.kernels = {};
  EXPECT_GT(estimate_seconds(in), 1e20);
}

TEST(Estimate, ReadingCTooTakesLonger) {
  MachineProfile profile = h200();
  profile.host_copy_bytes_per_s = 58e9;  // under twice the link's rate
  PlanInput in = product(8192, 8192, 64, profile);
  const double zero = estimate_seconds(in);
  in.beta_zero = false;
  EXPECT_GT(estimate_seconds(in), 1.2 * zero);
}

// About 100 ns; the bound leaves room for sanitizers and a busy machine, and would still see an allocation or
// a walk of a schedule.
TEST(Estimate, IsCheap) {
  const MachineProfile profile = h200();
  const PlanInput in = product(4096, 4096, 4096, profile);
  double best = 1e9, sum = 0;
  for (int round = 0; round < 20; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 100; ++i) sum += estimate_seconds(in);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / 100);
  }
  EXPECT_GT(sum, 0);
  EXPECT_LT(best, 5e-6);
}

}  // namespace
}  // namespace gemmhoist::plan::testing
