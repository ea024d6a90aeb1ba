#include "cases/vehicle.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace gemmhoist::cases {
namespace {

namespace fs = std::filesystem;

// Extents of BIG. The simulated device's kernels are plain loops and its tiles small: 160 is many of them.
// 900 takes several panels and several tiles of the largest kernel; the check against fp64 sets the limit.
const char* big_of(Vehicle vehicle) {
  switch (vehicle) {
    case Vehicle::cpu:
      return "300";
    case Vehicle::sim:
      return "160";
    case Vehicle::gpu:
      break;
    case Vehicle::automatic:
      return why_not(Vehicle::gpu).empty() ? "900" : "300";
  }
  return "900";
}

void set_default(const char* variable, const std::vector<std::string>& candidates) {
  const std::string found = test::first_existing(candidates);
  if (!found.empty()) setenv(variable, fs::canonical(found).c_str(), 0);
}

std::string gpu_complaint() {
  const test::Result result = play(Vehicle::gpu, "probe");
  if (result.counter("calls_gpu") > 0) return {};
  const auto state = result.out.find("state: ");
  return "no usable GPU here; its " + (state == std::string::npos ? result.out : result.out.substr(state));
}

}  // namespace

const char* to_string(Vehicle vehicle) {
  switch (vehicle) {
    case Vehicle::cpu:
      return "cpu";
    case Vehicle::sim:
      return "sim";
    case Vehicle::gpu:
      return "gpu";
    case Vehicle::automatic:
      return "automatic";
  }
  return "?";
}

std::string self() {
  return fs::read_symlink("/proc/self/exe").string();
}

std::string beside_self(const std::string& name) {
  return (fs::path(self()).parent_path() / name).string();
}

void find_libraries() {
  set_default("GEMMHOIST_TEST_LIBRARY",
              {beside_self("libgemmhoist.so"), beside_self("../../src/abi/libgemmhoist.so")});
  set_default("GEMMHOIST_TEST_SIM_LIBRARY",
              {beside_self("libgemmhoist-sim.so"), beside_self("../abi/libgemmhoist-sim.so")});
}

std::string why_not(Vehicle vehicle) {
  if (vehicle == Vehicle::sim && library_of(vehicle).empty())
    return "no library on the simulated device here";
  if (vehicle != Vehicle::gpu || std::getenv("GEMMHOIST_TEST_REQUIRE_GPU") != nullptr) return {};
  static const std::string complaint = gpu_complaint();
  return complaint;
}

std::string library_of(Vehicle vehicle) {
  if (vehicle != Vehicle::sim) return test::library();
  const char* path = std::getenv("GEMMHOIST_TEST_SIM_LIBRARY");
  return path == nullptr ? "" : path;
}

test::Environment environment_of(Vehicle vehicle, const test::Environment& more) {
  test::Environment environment = more;
  environment.emplace("LD_PRELOAD", library_of(vehicle));
  environment.emplace("CASES_BIG", big_of(vehicle));
  if (vehicle == Vehicle::cpu) environment.emplace("GEMMHOIST_ROUTE", "cpu");
  if (on_device(vehicle)) environment.emplace("GEMMHOIST_ROUTE", "gpu");
  return environment;
}

std::vector<std::string> scenario_command(const std::string& scenario, const std::string& argument) {
  return {self(), "--play", scenario, argument};
}

test::Result play(Vehicle vehicle, const std::string& scenario, const test::Environment& more,
                  const std::string& argument) {
  return test::run(scenario_command(scenario, argument), environment_of(vehicle, more));
}

test::Result play_plain(const std::string& scenario, const std::string& argument) {
  return test::run(scenario_command(scenario, argument));
}

void expect_right(const test::Result& result) {
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out.substr(0, 6), "right\n") << result.out;
  EXPECT_EQ(result.err, "");
}

void expect_served(Vehicle vehicle, const test::Result& result, int line) {
  const testing::ScopedTrace trace(__FILE__, line, to_string(vehicle));
  expect_right(result);
  if (vehicle == Vehicle::automatic) return;
  EXPECT_EQ(result.counter("calls_rescued"), 0) << result.out;
  EXPECT_EQ(result.counter("gpu_failures"), 0) << result.out;
  EXPECT_GT(result.counter(on_device(vehicle) ? "calls_gpu" : "calls_cpu"), 0) << result.out;
  EXPECT_EQ(result.counter(on_device(vehicle) ? "calls_cpu" : "calls_gpu"), 0) << result.out;
}

}  // namespace gemmhoist::cases
