#include "plan/makespan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "machines.hpp"
#include "plan/plan.hpp"

namespace gemmhoist::plan::testing {
namespace {

// The floor of a product with beta = 0: each way of the link and the arithmetic, each alone.
double floor_seconds(const PlanInput& in) {
  const double m = static_cast<double>(in.m), n = static_cast<double>(in.n), k = static_cast<double>(in.k);
  return std::max({4 * (m + n) * k / in.profile->h2d.bytes_per_s, 4 * m * n / in.profile->d2h.bytes_per_s,
                   2 * m * n * k / in.profile->kernel_flops_per_s});
}

double over_floor(std::int64_t m, std::int64_t n, std::int64_t k, const MachineProfile& profile,
                  std::int64_t device_bytes = std::int64_t{140} << 30) {
  PlanInput in = product(m, n, k, profile);
  in.device_bytes = device_bytes;
  Plan plan;
  EXPECT_EQ(make_plan(in, plan), PlanError::none);
  return plan.predicted_s / floor_seconds(in);
}

// Few, fast SMs: next to no waves, as in models of schedules that know none. There growing L takes 1.03, 1.27
// and 1.08 of the floor with free launches; ours pays for each launch and tile.
TEST(Makespan, SquaresOnTheModelMachine) {
  const MachineProfile profile = model_machine(16);
  EXPECT_LT(over_floor(2048, 2048, 2048, profile), 1.17);
  EXPECT_LT(over_floor(4096, 4096, 4096, profile), 1.28);
  EXPECT_LT(over_floor(8192, 8192, 8192, profile), 1.08);
}

// On 132 SMs waves count: a strip of n = 2048 has fewer large tiles than there are SMs.
TEST(Makespan, SquaresOn132Sms) {
  const MachineProfile profile = model_machine(132);
  EXPECT_LT(over_floor(2048, 2048, 2048, profile), 1.36);
  EXPECT_LT(over_floor(4096, 4096, 4096, profile), 1.43);
  EXPECT_LT(over_floor(8192, 8192, 8192, profile), 1.13);
  EXPECT_LT(over_floor(16384, 16384, 16384, profile), 1.05);
}

TEST(Makespan, LopsidedAndDeepProducts) {
  const MachineProfile profile = model_machine(132);
  EXPECT_LT(over_floor(16384, 128, 4096, profile), 1.06);
  EXPECT_LT(over_floor(128, 16384, 4096, profile), 1.06);
  EXPECT_LT(over_floor(50000, 256, 784, profile), 1.06);
  EXPECT_LT(over_floor(512, 512, 65536, profile), 1.06);
  EXPECT_LT(over_floor(8192, 8192, 512, profile), 1.06);
}

TEST(Makespan, BeyondTheDevicesMemory) {
  const MachineProfile profile = model_machine(132);
  // Operands and result are 12 and 50 times the memory.
  EXPECT_LT(over_floor(16384, 16384, 16384, profile, std::int64_t{256} << 20), 1.2);
  EXPECT_LT(over_floor(32768, 32768, 32768, profile, std::int64_t{256} << 20), 1.3);
}

TEST(Makespan, NeverBeatsTheFloor) {
  for (const std::int32_t sms : {1, 16, 132}) {
    const MachineProfile profile = model_machine(sms);
    for (const std::int64_t n : {300, 1111, 4096})
      for (const std::int64_t k : {64, 1000, 9000}) EXPECT_GE(over_floor(n, 2 * n, k, profile), 1);
  }
}

Staging chunks_of(std::int64_t bytes) {
  Staging staging;
  staging.chunk_bytes = bytes;
  staging.h2d_slots = staging.d2h_slots = 4;
  return staging;
}

TEST(Timeline, ChargesTheLinkByChunk) {
  MachineProfile profile = model_machine();
  profile.h2d = {10e-6, 50e9};
  const PlanInput in = product(1, 1, 1, profile);
  Timeline timeline(in, chunks_of(1 << 20), 10 << 20);
  const double bytes_s = (10 << 20) / 50e9;
  const double end = timeline.upload(10 << 20, false, false, 0);
  EXPECT_NEAR(end, kIssueCopySeconds + 10 * 10e-6 + bytes_s, 1e-9);
  EXPECT_NEAR(timeline.upload(10 << 20, false, true, 0), end + 10 * 10e-6 + bytes_s + kTurnSeconds, 1e-9);
}

// A link and SMs that cost nothing still wait for the worker.
TEST(Timeline, TheWorkerIssuesOneThingAfterAnother) {
  MachineProfile profile = model_machine();
  profile.h2d = profile.d2h = {0, 1e18};
  const PlanInput in = product(1, 1, 1, profile);
  Timeline timeline(in, chunks_of(1 << 10), 1 << 10);
  const double copied = timeline.upload(100 << 10, false, false, 0);
  EXPECT_NEAR(copied, 100 * kIssueCopySeconds, 1e-7);
  double end = 0;
  for (int i = 0; i < 100; ++i) end = timeline.compute({1, 0}, i, 0);
  EXPECT_NEAR(end, copied + 100 * kIssueLaunchSeconds + kLaunchSeconds, 1e-7);
}

// While the host fills the slots for the first time the link is slowed down, and only then.
TEST(Timeline, TheFirstFillSharesTheMemory) {
  MachineProfile profile = model_machine();
  profile.host_copy_bytes_per_s = 200e9;
  const PlanInput in = product(1, 1, 1, profile);
  Timeline timeline(in, chunks_of(1 << 20), 8 << 20);
  const double ring_s = (4 << 20) / 50e9;
  const double first = timeline.upload(4 << 20, true, false, 0);
  EXPECT_NEAR(first, ring_s + kFirstFillLoss * (4 << 20) / 200e9, 1e-5);
  EXPECT_NEAR(timeline.upload(4 << 20, true, false, 0) - first, ring_s, 1e-9);
}

TEST(Timeline, TheHostCopiesInAndOutWithOneRate) {
  MachineProfile profile = model_machine();
  profile.host_copy_bytes_per_s = 10e9;  // the bottleneck
  const PlanInput in = product(1, 1, 1, profile);
  Timeline timeline(in, chunks_of(1 << 20), 200 << 20);
  timeline.write_back(100 << 20, 0);
  const double up = timeline.upload(100 << 20, true, false, 0);
  const double both = (200 << 20) / 10e9;
  EXPECT_NEAR(std::max(up, timeline.finish()), both, 0.02 * both);
}

TEST(Timeline, LaunchesShareTheSms) {
  const MachineProfile profile = model_machine(100);
  const PlanInput in = product(1, 1, 1, profile);
  Timeline timeline(in, chunks_of(1 << 20), 1);
  const Work half{50, 1.0};
  const double first = timeline.compute(half, 0, 0), second = timeline.compute(half, 1, 0);
  EXPECT_NEAR(first, 1, 1e-3);
  EXPECT_NEAR(second, 1, 1e-3);                               // beside the first
  EXPECT_NEAR(timeline.peek(half, 2, 0), 2, 1e-3);            // no SM is left
  EXPECT_NEAR(timeline.compute(half, 2, 0), 2, 1e-3);         // and peek took none
  EXPECT_NEAR(timeline.compute({50, 0.1}, 0, 0), 1.1, 1e-3);  // 50 SMs are free from 1 on
  EXPECT_NEAR(timeline.compute({1000, 1.0}, 3, 0), 11.5, 1.01);
}

TEST(Timeline, AStreamRunsOneLaunchAtATime) {
  const MachineProfile profile = model_machine(100);
  const PlanInput in = product(1, 1, 1, profile);
  Timeline timeline(in, chunks_of(1 << 20), 1);
  timeline.compute({1, 1.0}, 0, 0);
  EXPECT_NEAR(timeline.compute({1, 1.0}, 0, 0), 2, 1e-3);
}

}  // namespace
}  // namespace gemmhoist::plan::testing
