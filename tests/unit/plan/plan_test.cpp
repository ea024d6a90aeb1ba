#include "plan/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "checker.hpp"
#include "machines.hpp"
#include "plan/makespan.hpp"

namespace gemmhoist::plan::testing {
namespace {

using enum StepKind;

std::string describe(const PlanInput& in) {
  return std::to_string(in.m) + " x " + std::to_string(in.n) + " x " + std::to_string(in.k) + " on " +
         std::to_string(in.device_bytes) + " bytes, " + std::to_string(in.pinned_bytes) + " pinned, " +
         to_char(in.trans_a) + to_char(in.trans_b);
}

void expect_right(const PlanInput& in) {
  Plan plan;
  ASSERT_EQ(make_plan(in, plan), PlanError::none) << describe(in);
  EXPECT_EQ(check(plan, in), "") << describe(in) << "\n" << to_string(plan).substr(0, 1500);
  EXPECT_GT(plan.predicted_s, 0);
  EXPECT_DOUBLE_EQ(plan.predicted_s, makespan(plan, in)) << describe(in);
}

TEST(Plan, IsRightForEdgeSizesOfTheTiles) {
  const MachineProfile profile = h200();
  for (const std::int64_t m : {1, 31, 63, 65, 127, 129, 257, 1025})
    for (const std::int64_t n : {1, 33, 255, 257, 513})
      for (const std::int64_t k : {1, 31, 33, 97}) expect_right(product(m, n, k, profile));
}

TEST(Plan, IsRightForRandomShapesMemoriesTilesAndTransposes) {
  constexpr KernelDescriptor only_large[] = {kLarge, kTransposeKernel};
  constexpr KernelDescriptor only_reference[] = {kReference, kTransposeKernel};
  constexpr KernelDescriptor odd[] = {kOdd, kSmall, kTransposeKernel};
  const std::span<const KernelDescriptor> sets[] = {kUsual, only_large, only_reference, odd, kUsual};
  MachineProfile tensor_cores = h200();  // and little else: even small products are made of images
  tensor_cores.kernel_flops_per_s = 1e11;
  const MachineProfile machines[] = {h200(), model_machine(), MachineProfile{}, model_machine(1),
                                     tensor_cores};
  std::mt19937_64 random(20240607);
  const auto extent = [&](double decades) {
    return static_cast<std::int64_t>(std::pow(10.0, std::uniform_real_distribution<>(0, decades)(random)));
  };
  int planned = 0, beyond_memory = 0, sliced = 0, of_images = 0, of_images_beyond = 0;
  for (int i = 0; i < 3000; ++i) {
    const MachineProfile& profile = machines[random() % 5];
    PlanInput in = product(extent(4.2), extent(4.2), extent(4.2), profile);
    in.trans_a = random() % 2 ? Transpose::yes : Transpose::no;
    in.trans_b = random() % 2 ? Transpose::yes : Transpose::no;
    in.a_pinned = random() % 4 == 0;
    in.b_pinned = random() % 4 == 0;
    in.kernels = sets[random() % 5];
    in.precision = static_cast<Precision>(random() % 3);
    in.pinned_bytes = std::int64_t{1} << (18 + random() % 10);
    if (random() % 2) in.device_bytes = std::int64_t{1} << (20 + random() % 12);
    Plan plan;
    if (const PlanError error = make_plan(in, plan); error != PlanError::none) {
      // The smallest plan: one tile of every kind, a slice of one stage, a ring of small chunks.
      ASSERT_EQ(error, PlanError::too_little_memory) << describe(in);
      EXPECT_LT(in.device_bytes, std::int64_t{16} << 20) << describe(in);
      continue;
    }
    ++planned;
    beyond_memory += plan.blocks.size() > 1;
    sliced += plan.panel_buffers > 1;
    of_images += plan.images.used();
    of_images_beyond += plan.images.used() && plan.blocks.size() > 1;
    if (plan.steps.size() > 1500) continue;  // the checker is quadratic
    ASSERT_EQ(check(plan, in), "") << describe(in) << "\n" << to_string(plan).substr(0, 1500);
    EXPECT_DOUBLE_EQ(plan.predicted_s, makespan(plan, in)) << describe(in);
  }
  EXPECT_GT(planned, 2500);
  EXPECT_GT(beyond_memory, 100);
  EXPECT_GT(sliced, 300);
  EXPECT_GT(of_images, 30);
  EXPECT_GT(of_images_beyond, 5);
}

TEST(Plan, TransposesNeedLandingSpace) {
  const MachineProfile profile = h200();
  PlanInput in = product(512, 512, 512, profile);
  in.trans_b = Transpose::yes;  // A as it is, B transposed: both K-outer already
  Plan direct, landed;
  ASSERT_EQ(make_plan(in, direct), PlanError::none);
  in.trans_a = Transpose::yes;
  ASSERT_EQ(make_plan(in, landed), PlanError::none);
  EXPECT_EQ(landed.device_bytes - direct.device_bytes, landed.h2d_slots * landed.chunk_bytes);
}

TEST(Plan, NeedsATransposeKernelOnlyWhereAnOperandIsTurned) {
  const MachineProfile profile = h200();
  constexpr KernelDescriptor bare[] = {kLarge, kSmall};
  PlanInput in = product(512, 512, 512, profile);
  in.kernels = bare;
  Plan plan;
  EXPECT_EQ(make_plan(in, plan), PlanError::no_kernel);
  in.trans_b = Transpose::yes;
  EXPECT_EQ(make_plan(in, plan), PlanError::none);
}

const KernelDescriptor& first_kernel(const Plan& plan, const PlanInput& in) {
  for (const Step& step : plan.steps)
    if (step.kind == compute) return in.kernels[static_cast<std::size_t>(step.kernel)];
  return kReference;
}

TEST(Plan, APrecisionIsAPermission) {
  const MachineProfile profile = h200();
  Plan plan;
  for (const Precision precision : {Precision::fp32, Precision::bf16x6, Precision::tf32}) {
    PlanInput in = product(8192, 8192, 8192, profile);
    in.precision = precision;
    expect_right(in);
    ASSERT_EQ(make_plan(in, plan), PlanError::none);
    EXPECT_EQ(first_kernel(plan, in).precision, precision);
    EXPECT_EQ(plan.images.used(), precision != Precision::fp32);
    EXPECT_EQ(plan.images.ranged(), precision == Precision::bf16x6);
    // A product that is over before its images are made is better made without.
    in = product(200, 200, 64, profile);
    in.precision = precision;
    ASSERT_EQ(make_plan(in, plan), PlanError::none);
    EXPECT_FALSE(plan.images.used());
  }
}

// Where a kernel is missing, or the machine has no rate, or one that loses to fp32.
TEST(Plan, WithoutAFasterPrecisionProductsAreMadeInFp32) {
  const KernelDescriptor without[][5] = {{kLarge, kTransposeKernel, kBf16x6, kPrepareTf32, kLeftover},
                                         {kLarge, kTransposeKernel, kBf16x6, kPrepareBf16x6, kTf32},
                                         {kLarge, kTransposeKernel, kTf32, kPrepareBf16x6, kLeftover}};
  const MachineProfile fast = h200();
  Plan plan;
  for (const auto& kernels : without) {
    PlanInput in = product(8192, 8192, 8192, fast);
    in.kernels = kernels;
    in.precision = Precision::bf16x6;
    ASSERT_EQ(make_plan(in, plan), PlanError::none);
    EXPECT_FALSE(plan.images.used());
  }
  for (const double rate : {0.0, 25e12}) {
    MachineProfile slow = h200();
    slow.bf16x6_flops_per_s = rate;
    PlanInput in = product(8192, 8192, 8192, slow);
    in.precision = Precision::bf16x6;
    ASSERT_EQ(make_plan(in, plan), PlanError::none);
    EXPECT_FALSE(plan.images.used()) << rate;
  }
}

// Images take two and a half times the memory of panels alone: where only these fit, slices of images are
// weighed against the whole product.
TEST(Plan, ImagesMayBeWorthSlices) {
  MachineProfile profile = h200();
  profile.kernel_flops_per_s = 5e12;  // a GPU of little fp32
  PlanInput in = product(16384, 16384, 16384, profile);
  in.precision = Precision::tf32;
  in.device_bytes = std::int64_t{4} << 30;
  Plan plan;
  ASSERT_EQ(make_plan(in, plan), PlanError::none);
  EXPECT_TRUE(plan.images.used());
  EXPECT_GT(plan.panel_buffers, 1);
  EXPECT_NEAR(estimate_seconds(in), plan.predicted_s, 0.3 * plan.predicted_s);
}

// Beyond the device's memory, too, they have to be worth it: here they gain 0.4 per cent.
TEST(Plan, BlocksOfImagesHaveToGainAsMuchAsAWholeProductOfThem) {
  const MachineProfile profile = h200();
  PlanInput in = product(65536, 65536, 512, profile);
  in.device_bytes = std::int64_t{2} << 30;
  Plan without, plan;
  ASSERT_EQ(make_plan(in, without), PlanError::none);
  in.precision = Precision::bf16x6;
  ASSERT_EQ(make_plan(in, plan), PlanError::none);
  EXPECT_FALSE(plan.images.used()) << plan.predicted_s / without.predicted_s;
  in = product(65536, 65536, 65536, profile);
  in.device_bytes = std::int64_t{2} << 30;
  in.precision = Precision::bf16x6;
  ASSERT_EQ(make_plan(in, plan), PlanError::none);
  EXPECT_TRUE(plan.images.used());
}

// Whatever the memory: small blocks of images have so many launches that they may take half as long again.
TEST(Plan, APrecisionMakesNoPlanSlower) {
  MachineProfile narrow = h200();
  narrow.h2d = narrow.d2h = {10e-6, 12e9};
  narrow.host_copy_bytes_per_s = 20e9;
  narrow.kernel_flops_per_s = 15e12;
  narrow.bf16x6_flops_per_s = 25e12;
  narrow.tf32_flops_per_s = 60e12;
  narrow.sm_count = 84;
  const MachineProfile machines[] = {h200(), narrow};
  std::mt19937_64 random(3);
  const auto extent = [&](double low, double high) {
    return static_cast<std::int64_t>(std::pow(10.0, std::uniform_real_distribution<>(low, high)(random)));
  };
  int images = 0;
  for (int i = 0; i < 300; ++i) {
    PlanInput in = product(extent(2.5, 4.5), extent(2.5, 4.5), extent(2.5, 4.5), machines[random() % 2]);
    in.trans_a = random() % 2 != 0 ? Transpose::yes : Transpose::no;
    in.trans_b = random() % 2 != 0 ? Transpose::yes : Transpose::no;
    in.device_bytes = std::int64_t{32} << (20 + 2 * (random() % 3));
    Plan strict, plan;
    ASSERT_EQ(make_plan(in, strict), PlanError::none);
    in.precision = random() % 2 != 0 ? Precision::bf16x6 : Precision::tf32;
    ASSERT_EQ(make_plan(in, plan), PlanError::none);
    EXPECT_LE(plan.predicted_s, 1.0001 * strict.predicted_s) << describe(in);
    images += plan.images.used();
  }
  EXPECT_GT(images, 20);
}

TEST(Plan, WithoutAnyKernelThereIsNone) {
  const MachineProfile profile = h200();
  PlanInput in = product(512, 512, 512, profile);
  in.kernels = {};
  Plan plan;
  EXPECT_EQ(make_plan(in, plan), PlanError::no_kernel);
}

TEST(Plan, NeverChoosesThePlainReferenceBesideATiledKernel) {
  const MachineProfile profile = h200();
  for (const std::int64_t n : {8, 100, 1000, 3000}) {
    Plan plan;
    ASSERT_EQ(make_plan(product(n, n, n, profile), plan), PlanError::none);
    for (const Step& step : plan.steps) EXPECT_NE(step.kernel, 3);
  }
}

TEST(Plan, AShortOperandGoesFirstAndStays) {
  const MachineProfile profile = h200();
  Plan plan;
  ASSERT_EQ(make_plan(product(50000, 256, 784, profile), plan), PlanError::none);
  ASSERT_GT(plan.steps.size(), 6u);
  EXPECT_EQ(plan.steps[0].operand, Operand::b);
  EXPECT_EQ(plan.steps[0].cols.extent, 256);
  for (std::size_t i = 1; i < plan.steps.size(); ++i) {
    if (plan.steps[i].kind == upload) {
      EXPECT_EQ(plan.steps[i].operand, Operand::a);
    }
  }
}

// Launches that fill the chip come home in order only where few of them share it.
TEST(Plan, LargeStripsTakeTurnsOnTwoStreams) {
  const MachineProfile profile = h200();
  Plan plan;
  ASSERT_EQ(make_plan(product(16384, 16384, 16384, profile), plan), PlanError::none);
  int large = 0;
  for (const Step& step : plan.steps) {
    if (step.kind != compute || 2 * tile_count(kLarge, step.rows.extent, step.cols.extent) < 132) continue;
    ++large;
    EXPECT_LT(step.stream, 2);
  }
  EXPECT_GT(large, 8);
  // Smaller ones need more of them side by side.
  ASSERT_EQ(make_plan(product(1024, 1024, 1024, profile), plan), PlanError::none);
  EXPECT_TRUE(std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& s) { return s.stream == 3; }));
}

TEST(Plan, SixtyFourBitSizes) {
  const MachineProfile profile = h200();
  const std::int64_t huge = std::int64_t{1} << 31;
  expect_right(product(46341, 46341, 2, profile));
  expect_right(product(huge, 1, 1, profile));
  expect_right(product(1, huge + 5, 3, profile));
  expect_right(product(3, 5, huge, profile));
  Plan plan;
  // 2^96 bytes: no plan, and no wrap that makes one.
  EXPECT_EQ(make_plan(product(std::int64_t{1} << 47, std::int64_t{1} << 47, 7, profile), plan),
            PlanError::too_little_memory);
}

TEST(Plan, WithoutMemoryThereIsNone) {
  const MachineProfile profile = h200();
  PlanInput in = product(1000, 1000, 1000, profile);
  Plan plan;
  in.device_bytes = 10000;
  EXPECT_EQ(make_plan(in, plan), PlanError::too_little_memory);
  in.device_bytes = std::int64_t{1} << 30;
  in.pinned_bytes = 1000;
  EXPECT_EQ(make_plan(in, plan), PlanError::too_little_memory);
}

TEST(Plan, SeveralTimesTheMemoryStreamsInSlicesWithWritesBackBehind) {
  const MachineProfile profile = h200();
  PlanInput in = product(6000, 5000, 4000, profile);
  in.device_bytes = std::int64_t{32} << 20;  // operands and result are 296 MB
  Plan plan;
  ASSERT_EQ(make_plan(in, plan), PlanError::none);
  EXPECT_EQ(check(plan, in), "");
  EXPECT_GT(plan.blocks.size(), 4u);
  EXPECT_EQ(plan.panel_buffers, 2);
}

}  // namespace
}  // namespace gemmhoist::plan::testing
