// The schedule on the virtual clock, against the floor: what the plan as executed loses of the link and the
// arithmetic it could overlap. Copies are real, arithmetic is only charged.
#include <gtest/gtest.h>

#include <algorithm>

#include "rig.hpp"

namespace gemmhoist::test {
namespace {

RigOptions reference_machine(double kernel_flops_per_s) {
  RigOptions options;
  options.simulation.memory_bytes = std::int64_t{2} << 30;
  options.simulation.tiles = TileSizes::real;
  options.simulation.sm_count = 132;
  options.simulation.kernel_flops_per_s = kernel_flops_per_s;
  options.simulation.arithmetic = false;
  options.pinned_bytes = 64 << 20;
  return options;
}

MachineProfile profile_of(const SimulationSettings& settings) {
  MachineProfile profile;
  profile.h2d = profile.d2h = {settings.link_latency_s, settings.link_bytes_per_s};
  profile.host_copy_bytes_per_s = 60e9;
  profile.kernel_flops_per_s = settings.kernel_flops_per_s;
  profile.sm_count = settings.sm_count;
  profile.measured = true;
  return profile;
}

double floor_seconds(const SimulationSettings& settings, double m, double n, double k) {
  return std::max({4 * k * (m + n) / settings.link_bytes_per_s, 4 * m * n / settings.link_bytes_per_s,
                   2 * m * n * k / settings.kernel_flops_per_s});
}

struct Case {
  std::int64_t m, n, k;
  double flops_per_s;
  double most;                         // makespan over floor
  Transpose trans_b = Transpose::yes;  // `no` takes B through landing and transpose
};

class Makespan : public testing::TestWithParam<Case> {};

TEST_P(Makespan, StaysNearTheFloor) {
  const Case& c = GetParam();
  const RigOptions options = reference_machine(c.flops_per_s);
  Rig rig(options);
  rig.on_worker(
      [&](device::Device&) { pipeline::set_profile(*rig.engine(), profile_of(options.simulation)); });
  const Product product({c.m, c.n, c.k, Transpose::no, c.trans_b, 0, 0, 0, 1, 0});
  rig.simulation().reset_clock();
  ASSERT_EQ(rig.multiply(product.call()).outcome, pipeline::Outcome::done);
  const double seconds = rig.simulation().makespan();
  const double floor = floor_seconds(options.simulation, static_cast<double>(c.m), static_cast<double>(c.n),
                                     static_cast<double>(c.k));
  EXPECT_GE(seconds, floor) << "the clock or the floor is wrong";
  EXPECT_LE(seconds, c.most * floor);
  RecordProperty("over_floor", std::to_string(seconds / floor));
  std::printf("%lld x %lld x %lld at %.0f TFLOP/s: %.3f ms, %.2f of the floor\n", static_cast<long long>(c.m),
              static_cast<long long>(c.n), static_cast<long long>(c.k), c.flops_per_s * 1e-12, seconds * 1e3,
              seconds / floor);
}

// The floor knows no latency: at 8 us a transfer, 1 MiB chunks alone cost 1.4 of it, which the small products
// feel.
INSTANTIATE_TEST_SUITE_P(
    Products, Makespan,
    testing::Values(Case{2048, 2048, 2048, 50e12, 1.45}, Case{4096, 4096, 4096, 50e12, 1.4},
                    Case{4096, 4096, 4096, 110e12, 1.3}, Case{8192, 1024, 1024, 50e12, 1.45},
                    Case{512, 512, 16384, 50e12, 1.3}, Case{4096, 4096, 4096, 50e12, 1.4, Transpose::no}));

}  // namespace
}  // namespace gemmhoist::test
