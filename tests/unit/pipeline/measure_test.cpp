// What measuring finds on the simulated device is positive and finite, and a failing device leaves the
// profile alone.
#include <gtest/gtest.h>

#include <cmath>

#include "rig.hpp"

namespace gemmhoist::test {
namespace {

TEST(Measure, FillsTheMeasuredPart) {
  Rig rig;
  MachineProfile profile;
  Status status(StatusCode::unavailable, "not run");
  rig.on_worker([&](device::Device& device) { status = pipeline::measure(*rig.engine(), device, profile); });
  ASSERT_TRUE(status.ok()) << status.what();
  EXPECT_TRUE(profile.measured);
  EXPECT_EQ(profile.sm_count, 4);
  EXPECT_EQ(profile.host_threads, 3);
  for (const double rate : {profile.h2d.bytes_per_s, profile.d2h.bytes_per_s, profile.host_copy_bytes_per_s,
                            profile.kernel_flops_per_s}) {
    EXPECT_GT(rate, 1e6);
    EXPECT_LE(rate, 1e14);
  }
  for (const double seconds : {profile.h2d.latency_s, profile.d2h.latency_s, profile.call_fixed_s}) {
    EXPECT_GT(seconds, 1e-7);
    EXPECT_LT(seconds, 1.0);
  }
  // The engine works on afterwards.
  const Product product({100, 100, 100});
  EXPECT_EQ(rig.multiply(product.call()).outcome, pipeline::Outcome::done);
  EXPECT_EQ(product.check(), "");
}

// Under TSan, which looks for races and not for calls, few of them, and a third under ASan: all would take
// minutes.
#if defined(__SANITIZE_THREAD__)
constexpr std::int64_t kStep = 19;
#elif defined(__SANITIZE_ADDRESS__)
constexpr std::int64_t kStep = 3;
#else
constexpr std::int64_t kStep = 1;
#endif

TEST(Measure, EveryCallMayFail) {
  for (std::int64_t k = 1;; k += kStep) {
    Rig rig;
    Fault fault;
    fault.fail_at = k;
    MachineProfile profile;
    const double before = profile.h2d.bytes_per_s;
    Status status;
    rig.simulation().arm(fault);
    rig.on_worker(
        [&](device::Device& device) { status = pipeline::measure(*rig.engine(), device, profile); });
    if (rig.simulation().calls() < k) break;
    if (!status.ok()) {
      EXPECT_FALSE(profile.measured);
      EXPECT_EQ(profile.h2d.bytes_per_s, before);
    }
    const Product product({50, 60, 70});
    EXPECT_EQ(rig.multiply(product.call()).outcome, pipeline::Outcome::done) << k;
    EXPECT_EQ(product.check(), "") << k;
  }
}

// A start whose measuring reports the device as lost closes the engine without it. Whether the driver forgets
// what it had pinned is not ours to know: the simulated device aborts if that was unmapped.
TEST(Measure, ALossWhileMeasuringLeavesPinnedMemoryMapped) {
  for (const bool dead : {false, true}) {
    for (const std::int64_t k : {1, 7, 40}) {
      Simulation simulation;
      auto device = make_simulated_device(simulation, 0);
      pipeline::EngineOptions options;
      options.pinned_bytes = 1 << 20;
      options.host_threads = 1;
      pipeline::Engine* engine = nullptr;
      ASSERT_TRUE(pipeline::make_engine(*device, options, engine).ok());
      Fault fault;
      fault.fail_at = k;
      fault.error = StatusCode::device_lost;
      fault.stay_dead = dead;
      simulation.arm(fault);
      MachineProfile profile;
      EXPECT_EQ(pipeline::measure(*engine, *device, profile).code(), StatusCode::device_lost) << k;
      pipeline::close_engine(engine, nullptr);
    }
  }
}

}  // namespace
}  // namespace gemmhoist::test
