// Right results through the whole pipeline: shapes, transposes, paddings, scalars, memory limits.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "observe/decision_log.hpp"
#include "observe/trace.hpp"
#include "rig.hpp"

namespace gemmhoist::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr Transpose kBoth[] = {Transpose::no, Transpose::yes};

void expect_right(Rig& rig, const Product& product, const std::string& name) {
  const CallResult result = rig.multiply(product.call());
  ASSERT_EQ(result.outcome, pipeline::Outcome::done) << name << ": " << result.status.what();
  EXPECT_TRUE(result.status.ok()) << name << ": " << result.status.what();
  EXPECT_EQ(product.check(), "") << name;
}

void expect_right(Rig& rig, const ProductShape& shape, Values values = Values::symmetric) {
  expect_right(rig, Product(shape, values), to_string(shape));
}

// The sizes of public bug reports, each with each of the others somewhere, every transpose.
TEST(Results, OddSizesAllTransposes) {
  Rig rig;
  constexpr std::int64_t kSizes[] = {1, 7, 11, 15, 33, 45, 127, 129};
  int turn = 0;
  for (const std::int64_t m : kSizes) {
    for (const std::int64_t n : kSizes) {
      const std::int64_t k = kSizes[turn++ % 8];
      for (const Transpose ta : kBoth) {
        for (const Transpose tb : kBoth) {
          ProductShape shape{m,        n,        k,        ta,   tb,
                             turn % 3, turn % 5, turn % 4, 1.5F, turn % 2 == 0 ? 0.0F : 0.5F};
          expect_right(rig, shape);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Results, LargeOddSizes) {
  Rig rig;
  for (const Transpose ta : kBoth) {
    for (const Transpose tb : kBoth) {
      expect_right(rig, {257, 1025, 300, ta, tb, 3, 5, 3, -0.75F, 0.5F});
      expect_right(rig, {1025, 129, 1025, ta, tb, 1, 0, 7, 1, 0});
    }
  }
}

TEST(Results, ScalarsApplyOnceEach) {
  Rig rig;
  for (const float beta : {0.0F, -0.0F, 0.5F, 1.0F, -1.0F, kNan}) {
    for (const float alpha : {1.0F, -2.0F, 0.0F, kNan}) {
      expect_right(rig, {65, 70, 40, Transpose::no, Transpose::yes, 1, 2, 3, alpha, beta});
    }
  }
}

TEST(Results, WideRangeAndPositive) {
  Rig rig;
  expect_right(rig, {130, 140, 500, Transpose::yes, Transpose::no, 0, 0, 0, 1, 0.5F}, Values::wide_range);
  expect_right(rig, {130, 140, 500, Transpose::no, Transpose::no, 0, 0, 0, 1, 0.5F}, Values::positive);
}

// A = 0 against a column of B with Inf and one with NaN: exactly those columns of C are NaN.
TEST(Results, NanAndInfStayInTheirColumns) {
  Rig rig;
  for (const Transpose tb : kBoth) {
    Product product({67, 33, 21, Transpose::no, tb, 0, 0, 0, 1, 0});
    const GemmCall call = product.call();
    for (std::int64_t i = 0; i < 67 * 21; ++i) product.a()[i] = 0;
    const auto b = [&](std::int64_t p, std::int64_t j) -> float& {
      return product.b()[tb == Transpose::no ? p + j * call.ldb : j + p * call.ldb];
    };
    b(3, 5) = kInf;
    b(20, 32) = kNan;
    expect_right(rig, product, "A = 0");
    for (std::int64_t j = 0; j < 33; ++j) {
      EXPECT_EQ(std::isnan(product.c()[j * call.ldc]), j == 5 || j == 32) << j;
    }
  }
}

// What an earlier call left on the device must not be multiplied: k = 9 after a call full of NaN.
TEST(Results, FormerContentsOfDeviceMemoryAreNotUsed) {
  Rig rig;
  for (const Transpose ta : kBoth) {
    for (const Transpose tb : kBoth) {
      Product poison({80, 80, 64, ta, tb, 0, 0, 0, 1, 0});
      for (std::int64_t i = 0; i < 80 * 64; ++i) poison.a()[i] = poison.b()[i] = kNan;
      ASSERT_EQ(rig.multiply(poison.call()).outcome, pipeline::Outcome::done);
      expect_right(rig, {80, 80, 9, ta, tb, 0, 0, 0, 1, 0});
    }
  }
}

TEST(Results, OperandsMayOverlap) {
  Rig rig;
  Product product({96, 96, 96, Transpose::no, Transpose::no, 0, 0, 0, 1, 0.5F});
  GemmCall call = product.call();
  std::copy(product.a(), product.a() + 96 * 96, product.b());
  call.b = call.a;  // the reference reads the copy
  ASSERT_EQ(rig.multiply(call).outcome, pipeline::Outcome::done);
  EXPECT_EQ(product.check(), "");
}

TEST(Results, ResultMayOverlapOperandWithoutHarmOutside) {
  Rig rig;
  Product product({64, 64, 64, Transpose::no, Transpose::no, 0, 0, 0, 1, 0});
  GemmCall call = product.call();
  call.c = product.a();
  EXPECT_EQ(rig.multiply(call).outcome, pipeline::Outcome::done);
}

// Four row blocks of one column-major C, filled by four threads at once: nothing but the block is written.
TEST(Results, ThreadsFillBlocksOfOneMatrix) {
  Rig rig;
  for (const float beta : {0.0F, 0.5F}) {
    Product whole({256, 90, 70, Transpose::no, Transpose::no, 0, 0, 5, 1, beta});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        GemmCall call = whole.call();
        call.m = 64;
        call.a += t * 64;
        call.c += t * 64;
        EXPECT_EQ(rig.multiply(call).outcome, pipeline::Outcome::done);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(whole.check(), "");
  }
}

// Device memory for a fraction of the operands: blocks of C, slices of k, buffers used again and again.
TEST(Results, DeviceMemoryMuchSmallerThanOperands) {
  for (const std::int64_t mib : {2, 4}) {
    RigOptions options;
    options.device_bytes = mib << 20;
    options.pinned_bytes = 1 << 20;
    Rig rig(options);
    for (const Transpose ta : kBoth) {
      for (const Transpose tb : kBoth) {
        expect_right(rig, {900, 800, 1100, ta, tb, 1, 2, 3, 1.25F, 0.5F});
        expect_right(rig, {70, 60, 20000, ta, tb, 0, 0, 0, 1, 0});
      }
    }
  }
}

TEST(Results, LittleDeviceMemoryLeftByOthers) {
  RigOptions options;
  options.simulation.memory_bytes = 64 << 20;
  Rig rig(options);
  expect_right(rig, {700, 700, 700, Transpose::no, Transpose::no, 0, 0, 0, 1, 0.5F});
  rig.simulation().take_memory(50 << 20);
  expect_right(rig, {1500, 1400, 900, Transpose::no, Transpose::no, 0, 0, 0, 1, 0.5F});
  rig.simulation().take_memory(0);
  expect_right(rig, {1500, 1400, 900, Transpose::yes, Transpose::no, 0, 0, 0, 1, 0.5F});
}

TEST(Results, TinyPinnedArena) {
  RigOptions options;
  options.pinned_bytes = 1;  // raised to the least there is
  Rig rig(options);
  expect_right(rig, {500, 600, 700, Transpose::yes, Transpose::no, 0, 0, 1, 1, 0.5F});
}

TEST(Results, CallerCopiesAlone) {
  for (const int threads : {1, 5}) {
    RigOptions options;
    options.host_threads = threads;
    Rig rig(options);
    expect_right(rig, {300, 400, 500, Transpose::no, Transpose::no, 1, 1, 1, 1, 0.5F});
  }
}

// Operands that are page-locked already go without staging; C is staged all the same.
TEST(Results, PinnedOperands) {
  Rig rig;
  for (const Transpose ta : kBoth) {
    for (const Transpose tb : kBoth) {
      for (int which = 1; which < 4; ++which) {
        Product product({300, 200, 150, ta, tb, 2, 3, 1, 1, 0.5F});
        rig.simulation().forget_declared();
        if ((which & 1) != 0) rig.simulation().declare(product.a(), 1 << 20, device::HostMemory::pinned);
        if ((which & 2) != 0) rig.simulation().declare(product.b(), 1 << 20, device::HostMemory::pinned);
        expect_right(rig, product, "pinned");
      }
    }
  }
  rig.simulation().forget_declared();
}

TEST(Results, DeviceOnlyOperandIsRefused) {
  Rig rig;
  Product product({30, 20, 10});
  rig.simulation().declare(product.a(), 1 << 20, device::HostMemory::device);
  const CallResult result = rig.multiply(product.call());
  EXPECT_EQ(result.outcome, pipeline::Outcome::partial);
  EXPECT_EQ(result.status.code(), StatusCode::unsupported);
  rig.simulation().forget_declared();
}

TEST(Results, KernelAndTilesAreReported) {
  Rig rig;
  Product product({400, 400, 100});
  const CallResult result = rig.multiply(product.call());
  EXPECT_EQ(result.kernel.rfind("sgemm_sim_", 0), 0U) << result.kernel;
  EXPECT_GT(result.tiles, 0);
  EXPECT_GT(result.times.total_s, 0);
  EXPECT_GT(result.times.submit_s, 0);
  // Kernels are timed where somebody asked: this runs with and without a log and a trace.
  EXPECT_EQ(result.times.kernel_s > 0, observe::call_log_enabled() || observe::trace_enabled());
}

// The caller copies too, and applies beta: its rounding, its flushing of subnormals and its traps are its
// own.
TEST(Results, CallersFloatingPointEnvironmentStaysItsOwn) {
  RigOptions options;
  options.host_threads = 1;
  Rig rig(options);
  Product product({400, 300, 1, Transpose::no, Transpose::no, 0, 0, 1, 1, 0.5F});
  for (std::int64_t i = 0; i < 400; ++i) product.a()[i] = 0;
  for (std::size_t i = 0; i < product.c_size(); ++i)
    product.c()[i] = 0x1p-140F * static_cast<float>(i % 500 + 1);
  product.remember_c();
#if defined(__x86_64__)
  const unsigned before = __builtin_ia32_stmxcsr();
  constexpr unsigned kFlushAndRoundUp = 0x8040 | 0x4000;
  const auto multiply = [&] {
    __builtin_ia32_ldmxcsr((before & ~0x7fU) | kFlushAndRoundUp);
    const pipeline::Outcome outcome = rig.multiply(product.call()).outcome;
    const unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    EXPECT_EQ(after & ~0x3fU, ((before & ~0x7fU) | kFlushAndRoundUp) & ~0x3fU);
    return outcome;
  };
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(multiply(), pipeline::Outcome::done);
    for (std::int64_t j = 0; j < 300; ++j) {
      for (std::int64_t r = 0; r < 400; ++r) {
        const auto at = static_cast<std::size_t>(r + j * 401);
        ASSERT_EQ(product.c()[at], 0.5F * (0x1p-140F * static_cast<float>(at % 500 + 1)));
      }
    }
    product.restore_c();
  }
#endif
}

TEST(Results, RealTileSizes) {
  RigOptions options;
  options.simulation.tiles = TileSizes::real;
  Rig rig(options);
  expect_right(rig, {513, 700, 333, Transpose::yes, Transpose::no, 1, 2, 3, 2, 0.5F});
}

}  // namespace
}  // namespace gemmhoist::test
