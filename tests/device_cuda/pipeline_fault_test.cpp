// Whole products through worker, pipeline and CUDA device, undisturbed and with every driver call failing in
// turn.
#include <gtest/gtest.h>

#include <cstdlib>

#include "fault_table.hpp"
#include "pipeline_harness.hpp"

namespace gemmhoist::test {
namespace {

using device::cuda::Result;
namespace result = device::cuda::result;
using pipeline::Outcome;

// Small chunks and little memory on the device: several of everything in a product of modest size.
constexpr pipeline::EngineOptions kOptions{2, std::int64_t{8} << 20, std::int64_t{32} << 20};

class PipelineOnCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    driver = driver_under_test();
    SKIP_WITHOUT_DRIVER(driver);
    faults().disarm();
    table = &fault_table(*driver.table);
  }
  void TearDown() override { faults().disarm(); }

  std::unique_ptr<PipelineHarness> start(Precision precision = Precision::fp32) {
    pipeline::EngineOptions options = kOptions;
    options.precision = precision;
    auto harness = std::make_unique<PipelineHarness>(driver, *table, options);
    EXPECT_TRUE(harness->status().ok()) << harness->status().what() << ' ' << harness->status().native();
    return harness;
  }

  void every_driver_call_fails_once(Result code);

  DriverUnderTest driver;
  const device::cuda::DriverTable* table = nullptr;
};

TEST_F(PipelineOnCuda, EveryTransposeAndBetaIsRight) {
  auto harness = start();
  for (const Transpose trans_a : {Transpose::no, Transpose::yes}) {
    for (const Transpose trans_b : {Transpose::no, Transpose::yes}) {
      for (const float beta : {0.0f, 0.5f}) {
        Product product(257, 193, 71, trans_a, trans_b, beta);
        const auto answer = harness->multiply(product.fresh());
        EXPECT_EQ(answer.outcome, Outcome::done) << answer.status.what() << ' ' << answer.status.native();
        EXPECT_EQ(product.complaint(), "") << to_char(trans_a) << to_char(trans_b) << ' ' << beta;
      }
    }
  }
}

// The faster precisions, with and without tiles that six products cannot make.
TEST_F(PipelineOnCuda, FasterPrecisionsAreRight) {
#ifdef __SANITIZE_THREAD__  // takes half a minute for all
  constexpr Transpose kTransposes[] = {Transpose::no};
#else
  constexpr Transpose kTransposes[] = {Transpose::no, Transpose::yes};
#endif
  for (const Precision precision : {Precision::bf16x6, Precision::tf32}) {
    auto harness = start(precision);
    for (const Transpose trans_a : kTransposes) {
      for (const Transpose trans_b : kTransposes) {
        for (const bool subnormal : {false, true}) {
          Product product(297, 393, 171, trans_a, trans_b, 0.5f);
          const bool tf32 = precision == Precision::tf32;
          if (tf32) product.keep_significant_bits(11);
          if (subnormal) product.make_first_subnormal();
          const auto answer = harness->multiply(product.fresh());
          const std::string what =
              std::string(to_string(precision)) + ' ' + to_char(trans_a) + to_char(trans_b);
          EXPECT_EQ(answer.outcome, Outcome::done) << answer.status.what() << ' ' << answer.status.native();
          EXPECT_EQ(product.complaint(), "") << what;
          EXPECT_NE(answer.kernel.find(to_string(precision)), std::string::npos) << answer.kernel;
          EXPECT_EQ(answer.leftover.tiles > 0, subnormal && !tf32) << what;
        }
      }
    }
  }
}

// A failure that leaves the device good: that call is finished by the CPU, the next one is the GPU's again.
// (Under sanitizers at a seventh of them: they look at how the calls are made, and all would take minutes.)
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr long kStep = 7;
#else
constexpr long kStep = 1;
#endif

void PipelineOnCuda::every_driver_call_fails_once(Result code) {
  auto harness = start();
  Product product(driver.big.m, driver.big.n, driver.big.k, Transpose::no, Transpose::no, 0.5f);
  ASSERT_EQ(harness->multiply(product.fresh()).outcome, Outcome::done);
  long k = 1;
  for (;; k += kStep) {
    faults().arm(k, code, false);
    const auto answer = harness->multiply(product.fresh());
    const bool struck = faults().struck;
    faults().disarm();
    ASSERT_EQ(product.complaint(), "") << "call " << k << " answers " << code;
    ASSERT_EQ(harness->multiply(product.fresh()).outcome, Outcome::done) << "after call " << k;
    ASSERT_EQ(product.complaint(), "") << "after call " << k;
    if (!struck) break;
    EXPECT_TRUE(answer.outcome == Outcome::done || !answer.status.ok());
  }
  EXPECT_GT(k, 60) << "the sweep covered a whole product";
  RecordProperty("driver_calls", static_cast<int>(k - 1));
}

// Two tests, so that two processes can share the minutes that they take on a GPU.
TEST_F(PipelineOnCuda, EveryDriverCallFailsOnceForWantOfMemory) {
  every_driver_call_fails_once(result::out_of_memory);
}
TEST_F(PipelineOnCuda, EveryDriverCallFailsOnceAsInvalid) {
  every_driver_call_fails_once(result::invalid_value);
}

TEST_F(PipelineOnCuda, EveryDriverCallFailsOnceInBf16x6) {
  auto harness = start(Precision::bf16x6);
  Product product(260, 300, 150, Transpose::no, Transpose::no, 0.5f);
  product.make_first_subnormal();
  ASSERT_EQ(harness->multiply(product.fresh()).outcome, Outcome::done);
  long k = 1;
  for (bool struck = true; struck; k += kStep) {
    faults().arm(k, result::invalid_value, false);
    const auto answer = harness->multiply(product.fresh());
    struck = faults().struck;
    faults().disarm();
    ASSERT_EQ(product.complaint(), "") << "call " << k;
    EXPECT_TRUE(answer.outcome == Outcome::done || !answer.status.ok());
    ASSERT_EQ(harness->multiply(product.fresh()).outcome, Outcome::done) << "after call " << k;
    ASSERT_EQ(product.complaint(), "") << "after call " << k;
  }
  EXPECT_GT(k, 30);
}

// A failure that takes the device along, at once or with everything after it: all later calls are the CPU's,
// and right.
TEST_F(PipelineOnCuda, TheDeviceIsLostAtEveryDriverCall) {
  Product product(driver.big.m, driver.big.n, driver.big.k, Transpose::no, Transpose::no, 0.5f);
  long k = 1;
  for (bool struck = true; struck; k += kStep) {
    auto harness = start();
    if (!harness->status().ok()) FAIL();
    faults().arm(k, k % 2 == 0 ? result::launch_failed : result::ecc_uncorrectable, true);
    harness->multiply(product.fresh());
    struck = faults().struck;
    ASSERT_EQ(product.complaint(), "") << "lost at call " << k;
    harness->multiply(product.fresh());
    ASSERT_EQ(product.complaint(), "") << "after the loss at call " << k;
    faults().disarm();  // closing may talk to the driver again
  }
  EXPECT_GT(k, 60);
}

// Opening and making the engine, likewise: no half-made device, no hang.
TEST_F(PipelineOnCuda, StartingFailsAtEveryDriverCall) {
  long k = 1;
  int refused = 0;
  for (bool struck = true; struck; ++k) {
    faults().arm(k, result::out_of_memory, false);
    PipelineHarness harness(driver, *table, kOptions);
    struck = faults().struck;
    faults().disarm();
    if (!harness.status().ok()) {
      ++refused;
      EXPECT_EQ(harness.status().code(), StatusCode::out_of_memory) << k << ' ' << harness.status().what();
      continue;
    }
    Product product(100, 50, 30, Transpose::no, Transpose::no, 0.5f);
    harness.multiply(product.fresh());
    ASSERT_EQ(product.complaint(), "") << k;
  }
  EXPECT_GT(refused, 10);
}

}  // namespace
}  // namespace gemmhoist::test
