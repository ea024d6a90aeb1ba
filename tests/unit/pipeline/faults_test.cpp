// Whatever goes wrong on the device, at whatever call: the result is right, the padding untouched, nobody
// hangs, and the next call is served if the device can serve it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "rig.hpp"

namespace gemmhoist::test {
namespace {

constexpr float kBetas[] = {0.0F, 0.5F};

// Small, yet with several panels, chunks, transposes and k that is no multiple of a stage.
ProductShape shape(float beta) {
  return {150, 140, 90, Transpose::yes, Transpose::yes, 1, 2, 3, 1.5F, beta};
}

RigOptions small_arena() {
  RigOptions options;
  options.pinned_bytes = 1 << 20;
  options.host_threads = 1;
  return options;
}

TEST(Faults, EveryCallOnceTransient) {
  for (const float beta : kBetas) {
    Rig rig(small_arena());
    Product product(shape(beta));
    const std::int64_t calls = calls_of(rig, product);
    ASSERT_GT(calls, 20);
    const std::int64_t met = fail_each_call_once(rig, product, calls, [](const CallResult&, std::int64_t) {});
    EXPECT_GT(met, calls / 2) << "the faults were not met";
  }
}

TEST(Faults, EveryCallPermanent) {
  for (const float beta : kBetas) {
    std::int64_t calls = 0;
    {
      Rig rig(small_arena());
      Product product(shape(beta));
      (void)calls_of(rig, product);
      calls = calls_of(rig, product);  // memory is there already
    }
    for (std::int64_t k = 1; k <= calls; ++k) {
      Rig rig(small_arena());
      Product product(shape(beta));
      (void)calls_of(rig, product);
      Fault fault;
      fault.fail_at = k;
      fault.stay_dead = true;
      rig.simulation().arm(fault);
      (void)rig.multiply(product.call());
      EXPECT_EQ(product.check(), "") << "dead from call " << k;
      product.restore_c();
      const CallResult next = rig.multiply(product.call());
      EXPECT_EQ(next.status.code(), StatusCode::device_lost) << k;
      EXPECT_EQ(product.check(), "") << "after the death at call " << k;
    }
  }
}

// The first call of an engine allocates: out of memory there, at every call.
TEST(Faults, EveryCallOutOfMemoryOnFreshEngine) {
  std::int64_t calls = 0;
  {
    Rig rig(small_arena());
    Product product(shape(0.5F));
    calls = calls_of(rig, product);
  }
  for (std::int64_t k = 1; k <= calls; ++k) {
    Rig rig(small_arena());
    Product product(shape(0.5F));
    Fault fault;
    fault.fail_at = k;
    fault.error = StatusCode::out_of_memory;
    rig.simulation().arm(fault);
    (void)rig.multiply(product.call());
    EXPECT_EQ(product.check(), "") << k;
    product.restore_c();
    rig.simulation().arm({});  // a call with fewer polls than the counted one has not met it
    const CallResult next = rig.multiply(product.call());
    EXPECT_EQ(next.outcome, pipeline::Outcome::done) << k << ' ' << next.status.what();
    EXPECT_EQ(product.check(), "") << k;
  }
}

// Also by a loss that the call after it does not know of; the device itself sees to it that nothing is
// unmapped that is still pinned.
TEST(Faults, StartFailsAtEveryCall) {
  for (std::int64_t k = 1; k <= 4; ++k) {
    for (const StatusCode error : {StatusCode::device_error, StatusCode::device_lost}) {
      for (const bool dead : {false, true}) {
        Simulation simulation;
        Fault fault;
        fault.fail_at = k;
        fault.error = error;
        fault.stay_dead = dead;
        simulation.arm(fault);
        Status status;
        auto device = make_simulated_device(simulation, 0);
        pipeline::EngineOptions options;
        options.pinned_bytes = 1 << 20;
        options.host_threads = 1;
        pipeline::Engine* engine = nullptr;
        status = pipeline::make_engine(*device, options, engine);
        EXPECT_EQ(status.ok(), engine != nullptr);
        EXPECT_EQ(status.ok(), k > 2) << k;  // pin, free_memory
        simulation.arm({});
        pipeline::close_engine(engine, device.get());
      }
    }
  }
}

TEST(Faults, OutOfMemoryForGood) {
  RigOptions options = small_arena();
  Rig rig(options);
  rig.simulation().take_memory(options.simulation.memory_bytes - 1000);
  Product product(shape(0.5F));
  const CallResult result = rig.multiply(product.call());
  EXPECT_EQ(result.status.code(), StatusCode::out_of_memory);
  EXPECT_EQ(product.check(), "");
  rig.simulation().take_memory(0);
  product.restore_c();
  EXPECT_EQ(rig.multiply(product.call()).outcome, pipeline::Outcome::done);
  EXPECT_EQ(product.check(), "");
}

// The worker is stuck inside the driver: the caller goes home at its deadline; the worker finds the call gone
// when it comes back, and serves the next one.
TEST(Faults, HangInsideTheDriver) {
  for (const float beta : kBetas) {
    Rig rig(small_arena());
    Product product(shape(beta));
    const std::int64_t calls = calls_of(rig, product);
    for (std::int64_t k = 1; k <= calls; k += calls / 8) {
      Fault fault;
      fault.hang_at = k;
      rig.simulation().arm(fault);
      const auto begin = std::chrono::steady_clock::now();
      const CallResult result = rig.multiply(product.call(), 100);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      EXPECT_EQ(product.check(), "") << "hung at " << k;
      if (result.outcome == pipeline::Outcome::partial) {
        EXPECT_EQ(result.status.code(), StatusCode::timed_out);
        EXPECT_LT(took.count(), 5.0);
        // What is C's now must stay, whatever the worker does when it wakes.
        const std::vector<float> before(product.c(), product.c() + product.c_size());
        rig.simulation().release();
        rig.on_worker([](device::Device&) {});
        EXPECT_EQ(std::memcmp(before.data(), product.c(), before.size() * sizeof(float)), 0) << k;
      }
      rig.simulation().release();
      rig.simulation().arm({});
      product.restore_c();
      const CallResult next = rig.multiply(product.call());
      EXPECT_EQ(next.outcome, pipeline::Outcome::done) << k << ' ' << next.status.what();
      EXPECT_EQ(product.check(), "") << "after hanging at " << k;
      product.restore_c();
    }
  }
}

// The device accepts everything and does nothing: lost, after a bounded wait.
TEST(Faults, DeviceThatStandsStill) {
  Rig rig(small_arena());
  Product product(shape(0.5F));
  rig.simulation().stall();
  const CallResult result = rig.multiply(product.call(), 100);
  EXPECT_EQ(result.outcome, pipeline::Outcome::partial);
  EXPECT_EQ(product.check(), "");
  product.restore_c();
  const CallResult next = rig.multiply(product.call(), 20000);
  EXPECT_EQ(next.status.code(), StatusCode::device_lost);
  EXPECT_EQ(product.check(), "");
}

// Calls taken back at any moment of their life.
TEST(Faults, DeadlineAtAnyMoment) {
  RigOptions options = small_arena();
  options.host_threads = 3;
  Rig rig(options);
  Product product({300, 280, 100, Transpose::no, Transpose::no, 1, 2, 3, 1, 0.5F});
  int partial = 0;
  for (int i = 0; i < 40; ++i) {
    pipeline::Outcome outcome = rig.multiply(product.call(), i % 20 / 2).outcome;
    partial += outcome == pipeline::Outcome::partial ? 1 : 0;
    ASSERT_EQ(product.check(), "") << i;
    product.restore_c();
  }
  EXPECT_GT(partial, 0);
  EXPECT_EQ(rig.multiply(product.call()).outcome, pipeline::Outcome::done);
  EXPECT_EQ(product.check(), "");
}

TEST(Faults, WorkerThatClosesAbandonsCalls) {
  Rig rig(small_arena());
  Product product(shape(0.5F));
  ASSERT_TRUE(rig.close_worker(20000));
  const CallResult result = rig.multiply(product.call());
  EXPECT_FALSE(result.submitted);
  EXPECT_EQ(result.outcome, pipeline::Outcome::partial);
  EXPECT_EQ(result.regions_left, 1);
  EXPECT_EQ(product.check(), "");
}

TEST(Faults, ManyCallersWhileCallsFail) {
  RigOptions options = small_arena();
  options.host_threads = 2;
  Rig rig(options);
  std::atomic<bool> over{false};
  std::thread trouble([&] {
    for (int i = 1; !over.load(); ++i) {
      Fault fault;
      fault.fail_at = 40 + i % 60;
      rig.simulation().arm(fault);
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    rig.simulation().arm({});
  });
  std::vector<std::thread> callers;
  for (int t = 0; t < 5; ++t) {
    callers.emplace_back([&, t] {
      Product product({90 + t * 13, 100 - t * 7, 40 + t, t % 2 == 0 ? Transpose::no : Transpose::yes,
                       t % 3 == 0 ? Transpose::no : Transpose::yes, 1, 2, 3, 1, 0.5F});
      for (int i = 0; i < 12; ++i) {
        (void)rig.multiply(product.call());
        EXPECT_EQ(product.check(), "");
        product.restore_c();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  over = true;
  trouble.join();
}

}  // namespace
}  // namespace gemmhoist::test
