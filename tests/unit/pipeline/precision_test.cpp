// Products in bf16x6 and tf32 through the whole pipeline: images of panels, tiles left to fp32, their count.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/checked.hpp"
#include "pipeline/engine.hpp"
#include "pipeline/execution.hpp"
#include "rig.hpp"
#include "support/image_reference.hpp"

namespace gemmhoist::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kSubnormal = std::numeric_limits<float>::denorm_min() * 5;
constexpr Transpose kBoth[] = {Transpose::no, Transpose::yes};

RigOptions options_for(Precision precision) {
  RigOptions options;
  options.precision = precision;
  return options;
}

// `tiles`: of 128 x 128, that are left to fp32 (in bf16x6).
void expect_right(Rig& rig, const Product& product, const std::string& name, std::int64_t tiles = 0) {
  const CallResult result = rig.multiply(product.call());
  ASSERT_EQ(result.outcome, pipeline::Outcome::done) << name << ": " << result.status.what();
  EXPECT_EQ(product.check(), "") << name;
  EXPECT_EQ(result.kernel, "sgemm_sim_bf16x6") << name;
  EXPECT_EQ(result.leftover.tiles, tiles) << name;
  const std::int64_t all = divide_up(product.call().m, kImageRows) * divide_up(product.call().n, kImageRows);
  EXPECT_GE(result.leftover.of, all) << name;
  EXPECT_EQ(result.leftover.of % all, 0) << name << ": each slice of k counts each tile";
}

TEST(Bf16x6, OddSizesAllTransposes) {
  Rig rig(options_for(Precision::bf16x6));
  constexpr std::int64_t kSizes[] = {1, 7, 33, 127, 129, 257};
  int turn = 0;
  for (const std::int64_t m : kSizes) {
    for (const std::int64_t n : kSizes) {
      const std::int64_t k = kSizes[turn++ % 6] + 20;
      for (const Transpose ta : kBoth) {
        for (const Transpose tb : kBoth) {
          const ProductShape shape{m,        n,        k,        ta,   tb,
                                   turn % 3, turn % 5, turn % 4, 1.5F, turn % 2 == 0 ? 0.0F : 0.5F};
          expect_right(rig, Product(shape), to_string(shape));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Bf16x6, AccurateOnOtherFamilies) {
  Rig rig(options_for(Precision::bf16x6));
  for (const Values values : {Values::positive, Values::wide_range}) {
    const ProductShape shape{300, 280, 700, Transpose::yes, Transpose::no, 0, 0, 0, 1, 0.5F};
    expect_right(rig, Product(shape, values), to_string(shape));
  }
}

// Of each kind of value that six products cannot make, one, in row 200 of A: the row of tiles that it belongs
// to is made in fp32, and no other.
TEST(Bf16x6, OutOfRangeTilesAreMadeInFp32) {
  Rig rig(options_for(Precision::bf16x6));
  for (const float value : {kSubnormal, kNan, kInf, 0x1.fffffep127F}) {
    for (const Transpose ta : kBoth) {
      Product product({300, 260, 90, ta, Transpose::no, 0, 0, 0, 1, 0.5F});
      const GemmCall call = product.call();
      product.a()[ta == Transpose::no ? 200 + 40 * call.lda : 40 + 200 * call.lda] = value;
      expect_right(rig, product, std::to_string(value), 3);
    }
  }
}

TEST(Bf16x6, NanAndInfStayInTheirColumns) {
  Rig rig(options_for(Precision::bf16x6));
  Product product({140, 260, 70, Transpose::no, Transpose::no, 0, 0, 0, 1, 0});
  const GemmCall call = product.call();
  for (std::int64_t i = 0; i < 140 * 70; ++i) product.a()[i] = 0;
  product.b()[3 + 5 * call.ldb] = kInf;
  product.b()[20 + 258 * call.ldb] = kNan;
  expect_right(rig, product, "A = 0", 4);
  for (std::int64_t j = 0; j < 260; ++j)
    EXPECT_EQ(std::isnan(product.c()[j * call.ldc]), j == 5 || j == 258) << j;
}

// What an earlier call left on the device, in panels, images, ranges and marks, must not be used.
TEST(Bf16x6, FormerContentsOfDeviceMemoryAreNotUsed) {
  Rig rig(options_for(Precision::bf16x6));
  for (const Transpose ta : kBoth) {
    for (const Transpose tb : kBoth) {
      Product poison({270, 270, 100, ta, tb, 0, 0, 0, 1, 0});
      for (std::int64_t i = 0; i < 270 * 100; ++i) poison.a()[i] = poison.b()[i] = kNan;
      ASSERT_EQ(rig.multiply(poison.call()).outcome, pipeline::Outcome::done);
      expect_right(rig, Product({130, 131, 9, ta, tb, 0, 0, 0, 1, 0}), "after NaN");
    }
  }
}

// Blocks of C and slices of k, which share buffers: each slice's images, ranges and marks are its own.
TEST(Bf16x6, BeyondDeviceMemory) {
  RigOptions options = options_for(Precision::bf16x6);
  options.device_bytes = 6 << 20;
  options.pinned_bytes = 1 << 20;
  Rig rig(options);
  for (const Transpose tb : kBoth) {
    Product product({600, 500, 900, Transpose::no, tb, 1, 2, 3, 1.5F, 0.5F});
    expect_right(rig, product, "in range");
    product.restore_c();
    product.a()[500 + 880 * product.call().lda] = kSubnormal;  // one slice, one row of tiles
    expect_right(rig, product, "one slice out of range", 4);
  }
}

TEST(Bf16x6, ExactOnIntegers) {
  Rig rig(options_for(Precision::bf16x6));
  Product product({200, 150, 130, Transpose::no, Transpose::yes, 0, 0, 0, 1, 0});
  const GemmCall call = product.call();
  for (std::int64_t i = 0; i < 200 * 130; ++i) product.a()[i] = static_cast<float>(i % 255 - 127);
  for (std::int64_t i = 0; i < 150 * 130; ++i) product.b()[i] = static_cast<float>(i % 121 - 60);
  expect_right(rig, product, "integers");
  for (std::int64_t j = 0; j < call.n; ++j) {
    for (std::int64_t i = 0; i < call.m; ++i) {
      double sum = 0;
      for (std::int64_t p = 0; p < call.k; ++p)
        sum += static_cast<double>(call.a[i + p * call.lda]) * static_cast<double>(call.b[j + p * call.ldb]);
      ASSERT_EQ(static_cast<double>(product.c()[i + j * call.ldc]), sum) << i << ", " << j;
    }
  }
}

TEST(Bf16x6, PinnedOperandsOnBothSides) {
  Rig rig(options_for(Precision::bf16x6));
  const Product product({260, 140, 150, Transpose::yes, Transpose::no, 2, 3, 1, 1, 0.5F});
  const GemmCall call = product.call();
  const auto bytes = [](std::int64_t ld, std::int64_t cols) {
    return static_cast<std::size_t>(ld * cols) * sizeof(float);
  };
  rig.simulation().declare(product.a(), bytes(call.lda, 260), device::HostMemory::pinned);
  rig.simulation().declare(product.b(), bytes(call.ldb, 140), device::HostMemory::pinned);
  expect_right(rig, product, "pinned");
}

// Each call to the device fails once, of products with tiles out of range: right, and the next one too.
TEST(Bf16x6, EveryCallMayFail) {
  RigOptions options = options_for(Precision::bf16x6);
  options.pinned_bytes = 1 << 20;
  options.host_threads = 1;
  Rig rig(options);
  Product product({150, 140, 90, Transpose::yes, Transpose::yes, 1, 2, 3, 1.5F, 0.5F});
  product.a()[7] = kSubnormal;
  (void)calls_of(rig, product);
  const std::int64_t calls = calls_of(rig, product);  // memory is there already
  const std::int64_t met =
      fail_each_call_once(rig, product, calls, [](const CallResult& next, std::int64_t call) {
        EXPECT_EQ(next.leftover.tiles, 2) << "after call " << call;
      });
  EXPECT_GT(met, calls / 2) << "the faults were not met";
}

TEST(Tf32, ProductsOfRoundedOperands) {
  Rig rig(options_for(Precision::tf32));
  for (const Transpose ta : kBoth) {
    for (const Transpose tb : kBoth) {
      Product product({300, 270, 200, ta, tb, 1, 0, 3, 1.5F, 0.5F});
      const GemmCall call = product.call();
      // Operands that tf32 holds exactly: then the bound is that of fp32.
      const auto round = [](float* values, std::int64_t rows, std::int64_t cols, std::int64_t ld) {
        for (std::int64_t j = 0; j < cols; ++j)
          for (std::int64_t i = 0; i < rows; ++i) values[i + j * ld] = round_to_tf32(values[i + j * ld]);
      };
      Product rough({300, 270, 200, ta, tb, 1, 0, 3, 1.5F, 0.5F});
      round(product.a(), ta == Transpose::no ? 300 : 200, ta == Transpose::no ? 200 : 300, call.lda);
      round(product.b(), tb == Transpose::no ? 200 : 270, tb == Transpose::no ? 270 : 200, call.ldb);
      const CallResult result = rig.multiply(product.call());
      EXPECT_EQ(result.outcome, pipeline::Outcome::done) << result.status.what();
      EXPECT_EQ(result.kernel, "sgemm_sim_tf32");
      EXPECT_EQ(result.leftover.of, 0);
      EXPECT_EQ(product.check(), "");
      // Others are rounded to it, and so give the same bits.
      EXPECT_EQ(rig.multiply(rough.call()).outcome, pipeline::Outcome::done);
      for (std::size_t i = 0; i < product.c_size(); ++i) {
        if (static_cast<std::int64_t>(i) % call.ldc >= call.m) continue;
        ASSERT_EQ(std::bit_cast<std::uint32_t>(product.c()[i]), std::bit_cast<std::uint32_t>(rough.c()[i]));
      }
    }
  }
}

TEST(Tf32, BeyondDeviceMemory) {
  RigOptions options = options_for(Precision::tf32);
  options.device_bytes = 6 << 20;
  options.pinned_bytes = 1 << 20;
  Rig rig(options);
  Product product({600, 500, 900, Transpose::no, Transpose::no, 1, 2, 3, 1, 0});
  for (std::int64_t i = 0; i < 601 * 899 + 600; ++i) product.a()[i] = static_cast<float>(i % 127 - 63);
  for (std::int64_t i = 0; i < 902 * 499 + 900; ++i) product.b()[i] = static_cast<float>(i % 61 - 30);
  const CallResult result = rig.multiply(product.call());
  EXPECT_EQ(result.outcome, pipeline::Outcome::done) << result.status.what();
  EXPECT_EQ(result.kernel, "sgemm_sim_tf32");
  EXPECT_EQ(product.check(), "");
}

// Where the precision was not asked for when the engine measured, or has no kernel, there is no rate: fp32.
TEST(Precision, WithoutARateProductsAreMadeInFp32) {
  Rig rig(options_for(Precision::bf16x6));
  rig.on_worker([&](device::Device&) { pipeline::set_profile(*rig.engine(), MachineProfile{}); });
  const Product product({300, 270, 200});
  const CallResult result = rig.multiply(product.call());
  EXPECT_EQ(result.outcome, pipeline::Outcome::done);
  EXPECT_EQ(result.kernel.find("bf16x6"), std::string::npos) << result.kernel;
  EXPECT_EQ(product.check(), "");
}

TEST(Precision, IsMeasuredWhereItIsAskedFor) {
  for (const Precision precision : {Precision::fp32, Precision::bf16x6, Precision::tf32}) {
    Rig rig(options_for(precision));
    MachineProfile profile;
    Status status(StatusCode::unavailable, "not run");
    rig.on_worker(
        [&](device::Device& device) { status = pipeline::measure(*rig.engine(), device, profile); });
    ASSERT_TRUE(status.ok()) << status.what();
    EXPECT_EQ(profile.bf16x6_flops_per_s > 0, precision == Precision::bf16x6);
    EXPECT_EQ(profile.tf32_flops_per_s > 0, precision == Precision::tf32);
  }
}

// More marks than the ring of slots holds come home in rounds.
TEST(Precision, MarksComeHomeInRounds) {
  Rig rig;
  constexpr std::int64_t kMarks = 1000, kRing = 2 * 64;
  rig.on_worker([&](device::Device& device) {
    pipeline::DeviceArena arena;
    pipeline::DeviceArena::Sizes sizes{};
    sizes[pipeline::DeviceArena::marks] = kMarks;
    ASSERT_TRUE(arena.reserve(device, sizes, 1 << 20).ok());
    std::vector<unsigned char> marks(kMarks);
    std::int64_t marked = 0;
    for (std::int64_t i = 0; i < kMarks; ++i) {
      marks[static_cast<std::size_t>(i)] = i % 7 == 0 || i > 990;
      marked += marks[static_cast<std::size_t>(i)];
    }
    // The simulated device's memory is this machine's.
    std::memcpy(reinterpret_cast<void*>(arena.at(pipeline::DeviceArena::marks)), marks.data(), kMarks);
    plan::Plan plan;
    plan.h2d_slots = 2;
    plan.chunk_bytes = kRing / 2;
    plan.images.prepare = plan.images.leftover = 0;
    plan.images.mark_bytes = kMarks;
    pipeline::Job* job = pipeline::take_job(GemmCall{}, Precision::bf16x6);
    ASSERT_NE(job, nullptr);
    pipeline::Context context{device,  rig.engine()->queue(),
                              *job,    plan,
                              arena,   rig.engine()->pinned(),
                              nullptr, false,
                              false,   false,
                              false};
    pipeline::Leftovers leftovers(context);
    bool progressed = false;
    ASSERT_TRUE(leftovers.advance(false, progressed).ok());
    EXPECT_FALSE(progressed) << "C is not yet queued";
    int copies = 0;
    for (int i = 0; !leftovers.finished() && i < 1'000'000; ++i) {
      progressed = false;
      ASSERT_TRUE(leftovers.advance(true, progressed).ok());
      copies += progressed;
    }
    EXPECT_EQ(leftovers.of(), kMarks);
    EXPECT_EQ(leftovers.count(), marked);
    EXPECT_EQ(copies, 2 * divide_up(kMarks, kRing));
    pipeline::let_go(*job);
    EXPECT_TRUE(arena.release_all(device).ok());
  });
}

}  // namespace
}  // namespace gemmhoist::test
