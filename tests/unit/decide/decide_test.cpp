#include "decide/decide.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace gemmhoist::decide {
namespace {

using config::RouteMode;

// Figures of the kind of machine that the library was made for: a large GPU on PCIe 5, 16 cores.
MachineProfile large_machine() {
  MachineProfile p;
  p.h2d = p.d2h = {8e-6, 55e9};
  p.host_copy_bytes_per_s = 58e9;
  p.kernel_flops_per_s = 50e12;
  p.start_s = 0.4;
  p.end_s = 0.05;
  p.sm_count = 132;
  p.host_threads = 16;
  p.measured = true;
  return p;
}

DecisionInput product(std::int64_t m, std::int64_t n, std::int64_t k, GpuState gpu, double cpu_s) {
  DecisionInput in;
  in.m = m;
  in.n = n;
  in.k = k;
  in.gpu = gpu;
  in.cpu_s = cpu_s;
  return in;
}

struct Case {
  const char* what;
  DecisionInput in;
  Route route;
  Reason reason;
  bool start;
};

DecisionInput with(DecisionInput in, double earned, double start_remaining = 0, double queue = 0) {
  in.earned_s = earned;
  in.start_remaining_s = start_remaining;
  in.queue_s = queue;
  return in;
}
DecisionInput with(DecisionInput in, RouteMode mode) {
  in.mode = mode;
  return in;
}

TEST(Decide, EveryStateAndShape) {
  using enum GpuState;
  const DecisionInput big_cold = product(4096, 4096, 4096, cold, 0.118);
  const DecisionInput big_starting = product(4096, 4096, 4096, starting, 0.118);
  const DecisionInput big_up = product(4096, 4096, 4096, up, 0.118);
  const DecisionInput huge_cold = product(8192, 8192, 8192, cold, 0.939);
  const Case cases[] = {
      {"tiny", product(8, 8, 8, up, 1e-6), Route::cpu, Reason::too_small, false},
      {"tiny, absent", product(8, 8, 8, absent, 1e-6), Route::cpu, Reason::too_small, false},
      {"big, up", big_up, Route::gpu, Reason::gpu_faster, false},
      {"big, up, a queue within its gain", with(big_up, 0, 0, 0.05), Route::gpu, Reason::gpu_faster, false},
      {"big, up, a long queue", with(big_up, 0, 0, 0.2), Route::cpu, Reason::gpu_busy, false},
      {"big, the CPU faster still", product(4096, 4096, 4096, up, 0.003), Route::cpu, Reason::cpu_faster,
       false},
      {"big, but for the margin", product(4096, 4096, 4096, up, 0.0043), Route::cpu, Reason::cpu_faster,
       false},
      {"300 cubed, cold", product(300, 300, 300, cold, 0.5e-3), Route::cpu, Reason::gpu_cold, false},
      {"big, cold, nothing earned", big_cold, Route::cpu, Reason::gpu_cold, false},
      {"big, cold, nearly earned", with(big_cold, 0.449), Route::cpu, Reason::gpu_cold, false},
      {"big, cold, earned", with(big_cold, 0.451), Route::cpu, Reason::gpu_cold, true},
      {"outlasts the start-up", huge_cold, Route::gpu, Reason::worth_waiting, true},
      {"outlasts it only just", product(8192, 8192, 8192, cold, 0.5), Route::cpu, Reason::gpu_cold, false},
      {"starting", with(big_starting, 1, 0.3), Route::cpu, Reason::gpu_starting, false},
      {"starting, all but up", with(big_starting, 1, 0.01), Route::gpu, Reason::worth_waiting, false},
      {"starting, overdue", with(big_starting, 1, -5), Route::gpu, Reason::worth_waiting, false},
      {"starting, others wait already", with(big_starting, 1, 0.01, 0.2), Route::cpu, Reason::gpu_starting,
       false},
      {"starting, small", product(200, 200, 200, starting, 5e-5), Route::cpu, Reason::cpu_faster, false},
      {"absent", product(4096, 4096, 4096, absent, 0.118), Route::cpu, Reason::gpu_absent, false},
      {"lost", product(4096, 4096, 4096, lost, 0.118), Route::cpu, Reason::gpu_lost, false},
      {"backoff", product(4096, 4096, 4096, backoff, 0.118), Route::cpu, Reason::gpu_backoff, false},
      {"rank one", product(8192, 8192, 1, up, 1), Route::cpu, Reason::cpu_faster, false},
      {"matrix times vector", product(16384, 1, 16384, up, 1), Route::cpu, Reason::cpu_faster, false},
      {"vector times matrix", product(1, 16384, 16384, cold, 1), Route::cpu, Reason::cpu_faster, false},
      {"forced to the CPU", with(big_up, RouteMode::cpu), Route::cpu, Reason::forced_cpu, false},
      {"forced, up", with(product(1, 1, 1, up, 1e-7), RouteMode::gpu), Route::gpu, Reason::forced_gpu, false},
      {"forced, cold", with(product(1, 1, 1, cold, 1e-7), RouteMode::gpu), Route::gpu, Reason::forced_gpu,
       true},
      {"forced, starting", with(product(9, 9, 9, starting, 1e-7), RouteMode::gpu), Route::gpu,
       Reason::forced_gpu, false},
      {"forced, absent", with(product(9, 9, 9, absent, 1e-7), RouteMode::gpu), Route::cpu, Reason::gpu_absent,
       false},
      {"forced, lost", with(product(9, 9, 9, lost, 1e-7), RouteMode::gpu), Route::cpu, Reason::gpu_lost,
       false},
      {"forced, backoff", with(product(9, 9, 9, backoff, 1e-7), RouteMode::gpu), Route::cpu,
       Reason::gpu_backoff, false},
  };
  const MachineProfile profile = large_machine();
  for (const Case& c : cases) {
    const Decision got = decide(c.in, profile);
    EXPECT_EQ(got.route, c.route) << c.what;
    EXPECT_STREQ(to_string(got.reason), to_string(c.reason)) << c.what << " gpu_s " << got.gpu_s;
    EXPECT_EQ(got.start_gpu, c.start) << c.what;
  }
}

TEST(Decide, PredictionsComeBackWithTheAnswer) {
  const Decision got = decide(product(4096, 4096, 4096, GpuState::up, 0.118), large_machine());
  EXPECT_EQ(got.cpu_s, 0.118);
  EXPECT_GT(got.gpu_s, 3e-3);
  EXPECT_LT(got.gpu_s, 9e-3);
}

// Whatever the shape, a GPU route is one whose predicted time is well under the CPU's.
TEST(Decide, NeverTheGpuWithinItsError) {
  const MachineProfile profile = large_machine();
  for (const GpuState state : {GpuState::up, GpuState::starting, GpuState::cold}) {
    for (double m = 16; m < 2e5; m *= 3) {
      for (double n = 16; n < 2e5; n *= 3) {
        for (double k = 16; k < 2e4; k *= 3) {
          for (const double rate : {1e10, 1e11, 1e12, 4e12}) {
            const double cpu_s = 2 * m * n * k / rate;
            DecisionInput in = product(std::lround(m), std::lround(n), std::lround(k), state, cpu_s);
            in.start_remaining_s = state == GpuState::starting ? 0.2 : 0;
            const Decision got = decide(in, profile);
            if (got.route == Route::cpu) continue;
            double gpu_s = got.gpu_s + in.start_remaining_s;
            if (state == GpuState::cold) gpu_s += profile.start_s + profile.end_s;
            ASSERT_LT(gpu_s, 0.9 * cpu_s) << m << ' ' << n << ' ' << k << ' ' << rate;
          }
        }
      }
    }
  }
}

// A measured rate that wavers by 5 % round the break-even leaves the route alone once it is away from it.
TEST(Decide, NoiseDoesNotMoveAClearDecision) {
  const MachineProfile profile = large_machine();
  const double gpu_s = decide(product(2048, 2048, 2048, GpuState::up, 0.016), profile).gpu_s;
  for (const double noise : {0.95, 1.0, 1.05}) {
    EXPECT_EQ(decide(product(2048, 2048, 2048, GpuState::up, gpu_s * noise), profile).route, Route::cpu);
    EXPECT_EQ(decide(product(2048, 2048, 2048, GpuState::up, 1.4 * gpu_s * noise), profile).route,
              Route::gpu);
  }
}

// A loop of equal calls: the GPU starts once its savings have paid for it, and the detour until then is
// bounded.
TEST(Decide, EarnsItsStartInALoop) {
  const MachineProfile profile = large_machine();
  double earned = 0;
  int calls = 0;
  for (; calls < 1000; ++calls) {
    const Decision got = decide(with(product(2048, 2048, 2048, GpuState::cold, 0.016), earned), profile);
    if (got.start_gpu) break;
    ASSERT_EQ(got.route, Route::cpu);
    earned += got.cpu_s - got.gpu_s;
  }
  EXPECT_GT(calls, 25);
  EXPECT_LT(calls, 40);  // 0.45 s at some 15 ms a call
}

TEST(Decide, WhatRecentCallsTookCorrectsTheEstimate) {
  const MachineProfile profile = large_machine();
  DecisionInput in = product(4096, 4096, 4096, GpuState::up, 0.008);
  const Decision plain = decide(in, profile);
  EXPECT_EQ(plain.route, Route::gpu);
  GpuTimeLearner learner;
  for (int i = 0; i < 50; ++i) learner.learn(plain.gpu_estimate_s, 2.5 * plain.gpu_estimate_s);
  in.gpu_times = &learner;
  const Decision slow = decide(in, profile);
  EXPECT_NEAR(slow.gpu_s, 2.5 * plain.gpu_s, 0.01 * plain.gpu_s);
  EXPECT_EQ(slow.route, Route::cpu);
  EXPECT_TRUE(slow.by_correction);
  int refusals = 0;
  for (; refusals < 1000 && decide(in, profile).route == Route::cpu; ++refusals)
    learner.forgive(slow.gpu_estimate_s);
  EXPECT_GT(refusals, 10);  // a try costs one slow call: not too often
  EXPECT_LT(refusals, 300);
}

TEST(Decide, LittleDeviceMemoryCostsTime) {
  const MachineProfile profile = large_machine();
  DecisionInput in = product(16384, 16384, 16384, GpuState::up, 7.5);
  const double plenty = decide(in, profile).gpu_s;
  in.device_bytes = std::int64_t{64} << 20;
  EXPECT_GT(decide(in, profile).gpu_s, 1.2 * plenty);
  in.device_bytes = 1;
  EXPECT_EQ(decide(in, profile).route, Route::cpu);
}

TEST(Decide, EveryReasonHasAName) {
  for (int i = 0; i < static_cast<int>(Reason::count_); ++i) {
    for (int j = 0; j < i; ++j)
      EXPECT_STRNE(to_string(static_cast<Reason>(i)), to_string(static_cast<Reason>(j)));
  }
  EXPECT_STREQ(to_string(Route::cpu), "cpu");
  EXPECT_STREQ(to_string(Route::gpu), "gpu");
  EXPECT_STREQ(to_string(Reason::in_fork_child), "in_fork_child");
  EXPECT_STREQ(to_string(Reason::cpu_looked_at), "cpu_looked_at");
}

}  // namespace
}  // namespace gemmhoist::decide
