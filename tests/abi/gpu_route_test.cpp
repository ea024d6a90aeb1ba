// The exported names with every product on the GPU route: the test-only library, whose device is simulated on
// the host.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "abi/process.hpp"

namespace gemmhoist::test {
namespace {

class GpuRoute : public testing::Test {
 protected:
  void SetUp() override {
    const char* library = std::getenv("GEMMHOIST_TEST_SIM_LIBRARY");
    if (library == nullptr) GTEST_SKIP() << "the library on the simulated device was not built";
    environment_ = {{"LD_PRELOAD", library}, {"GEMMHOIST_ROUTE", "gpu"}};
  }
  Result calls(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {program("calls_openblas"), "counters"});
    return run(arguments, environment_);
  }
  Environment environment_;
};

TEST_F(GpuRoute, EverySpellingIsServed) {
  for (const char* spelling : {"cblas_sgemm", "sgemm_", "sgemm", "scipy_cblas_sgemm", "scipy_sgemm_"}) {
    const Result result = calls({"product", spelling, "32"});
    EXPECT_EQ(result.out.substr(0, 6), "right\n") << spelling << result.err;
    EXPECT_EQ(result.counter("calls_gpu"), result.counter("calls_cblas") + result.counter("calls_fortran"));
  }
  for (const char* spelling :
       {"cblas_sgemm64_", "cblas_sgemm_64", "sgemm_64_", "scipy_cblas_sgemm64_", "scipy_sgemm_64_"}) {
    const Result result = calls({"product", spelling, "64"});
    EXPECT_EQ(result.out.substr(0, 6), "right\n") << spelling << result.err;
    EXPECT_EQ(result.counter("calls_gpu"),
              result.counter("calls_cblas64") + result.counter("calls_fortran64"));
    EXPECT_GT(result.counter("calls_gpu"), 0);
  }
}

TEST_F(GpuRoute, ReportsAndSpecialValuesAreThoseOfTheBlas) {
  for (const char* spelling : {"cblas_sgemm", "sgemm_"}) {
    const Result plain = run({program("calls_openblas"), "illegal", spelling});
    const Result served = run({program("calls_openblas"), "illegal", spelling}, environment_);
    EXPECT_EQ(served.out, plain.out);
    EXPECT_EQ(served.err, plain.err);
    EXPECT_EQ(calls({"special", spelling}).out.substr(0, 6), "right\n");
  }
}

TEST_F(GpuRoute, TrapsAndFlagsOfTheCallerSeeNothingOfOurs) {
  const Result plain = run({program("traps")});
  const Result served = run({program("traps")}, environment_);
  EXPECT_EQ(served.status, 0);
  EXPECT_EQ(served.out, plain.out);
}

TEST_F(GpuRoute, ForkedChildGoesToTheCpuAndTheParentGoesOn) {
  const Result result = calls({"family", "cblas_sgemm"});
  EXPECT_EQ(result.out.substr(0, 15), "right, child 0\n") << result.out << result.err;
  EXPECT_EQ(result.counter("calls_gpu"), 2);
  EXPECT_EQ(result.counter("calls_rescued"), 0);
}

// From the setting to the kernel: measured at the start, planned, made, counted.
TEST_F(GpuRoute, PrecisionIsThatOfTheSetting) {
  environment_["GEMMHOIST_SIM_SLOW_FP32"] = "1";
  environment_["GEMMHOIST_LOG"] = "calls";
  for (const char* precision : {"fp32", "bf16x6", "tf32"}) {
    environment_["GEMMHOIST_PRECISION"] = precision;
    const Result result = calls({"large", "cblas_sgemm"});
    const bool is_tf32 = precision == std::string("tf32");
    if (!is_tf32) {
      EXPECT_EQ(result.out.substr(0, 6), "right\n") << result.err;
    }
    const std::string kernel = precision == std::string("fp32") ? "" : std::string(precision);
    EXPECT_NE(result.err.find(" sgemm_sim_" + kernel), std::string::npos) << result.err;
    EXPECT_EQ(result.counter("range_tiles") > 0, precision == std::string("bf16x6"));
    EXPECT_EQ(result.counter("range_tiles_fp32"), 0);
  }
}

// The device fails when some tiles are home: the CPU makes the others, each where it belongs, beta once.
TEST_F(GpuRoute, WhatTheDeviceLeavesTheCpuFinishes) {
  environment_["GEMMHOIST_SIM_REPORT"] = "1";
  const Result whole = calls({"large", "cblas_sgemm"});
  long device_calls = 0;
  ASSERT_EQ(std::sscanf(whole.err.c_str(), "simulated device: %ld calls", &device_calls), 1) << whole.err;
  // Which tiles are home when a call fails is a matter of threads; the last calls are the likeliest.
  bool shared = false;
  for (int i = 0; i < 120 && !shared; ++i) {
    environment_["GEMMHOIST_SIM_FAIL_AT"] = std::to_string(device_calls - i % 24);
    const Result result = calls({"large", "cblas_sgemm"});
    ASSERT_EQ(result.out.substr(0, 6), "right\n")
        << environment_["GEMMHOIST_SIM_FAIL_AT"] << ": " << result.out;
    shared = result.counter("tiles_gpu") > 0 && result.counter("tiles_rescued") > 0;
  }
  EXPECT_TRUE(shared) << "no fault came when some tiles were home and others were not";
}

// In a program without a BLAS of its own: OpenBLAS has 60 KiB of thread-local storage, and a thread with a 16
// KiB stack cannot even be made beside it.
TEST_F(GpuRoute, FirstCallOnASmallStack) {
  const Result result = run({program("calls_alone"), "counters", "small-stack", "cblas_sgemm"}, environment_);
  EXPECT_EQ(result.out.substr(0, 6), "right\n") << result.out << result.err << result.status;
  EXPECT_EQ(result.counter("calls_gpu"), 1);
}

TEST_F(GpuRoute, ThreadsConstructorsAndExitHandlers) {
  const Result threads = calls({"threads", "sgemm_"});
  EXPECT_EQ(threads.out.substr(0, 6), "right\n");
  EXPECT_EQ(threads.counter("calls_gpu") + threads.counter("calls_cpu"), 16 * 20);
  const Result constructor = calls({"once", "cblas_sgemm", "32", "open", program("libcalls_when_loaded.so")});
  EXPECT_EQ(constructor.out.substr(0, 22), "constructor: 12\nright\n") << constructor.err;
  const Result at_exit = calls({"atexit", "cblas_sgemm"});
  EXPECT_EQ(at_exit.out.find("right\n"), 0u) << at_exit.out;
  EXPECT_EQ(at_exit.err, "");
  EXPECT_EQ(at_exit.status, 7);
}

}  // namespace
}  // namespace gemmhoist::test
