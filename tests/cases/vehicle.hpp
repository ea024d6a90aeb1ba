// Vehicle: the library as a case meets it: which file is preloaded, by which route, with sizes to fit.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "abi/process.hpp"

namespace gemmhoist::cases {

enum class Vehicle {
  cpu,        // the shipped library, GEMMHOIST_ROUTE=cpu
  sim,        // the same code on the simulated device, GEMMHOIST_ROUTE=gpu
  gpu,        // the shipped library on a GPU of this machine, GEMMHOIST_ROUTE=gpu
  automatic,  // the shipped library, deciding for itself
};
const char* to_string(Vehicle vehicle);
inline void PrintTo(Vehicle vehicle, std::ostream* out) {
  *out << to_string(vehicle);
}
inline bool on_device(Vehicle vehicle) {
  return vehicle == Vehicle::sim || vehicle == Vehicle::gpu;
}

// Empty where the vehicle can be used here; else why not. With GEMMHOIST_TEST_REQUIRE_GPU set, a GPU that is
// not usable is no reason: the tests run, and fail.
std::string why_not(Vehicle vehicle);

std::string library_of(Vehicle vehicle);
// What the vehicle's processes see, and more. `more` wins.
test::Environment environment_of(Vehicle vehicle, const test::Environment& more = {});

// This binary as the process that plays a scenario.
std::vector<std::string> scenario_command(const std::string& scenario, const std::string& argument = "");
test::Result play(Vehicle vehicle, const std::string& scenario, const test::Environment& more = {},
                  const std::string& argument = "");
// The same in a process without the library.
test::Result play_plain(const std::string& scenario, const std::string& argument = "");

// Paths that the tests need, from beside this binary or its build folder where the environment names none.
void find_libraries();
std::string self();
std::string beside_self(const std::string& name);

}  // namespace gemmhoist::cases

// The scenario was right, in silence, on the vehicle's route.
#define EXPECT_SERVED(vehicle, result) ::gemmhoist::cases::expect_served((vehicle), (result), __LINE__)
namespace gemmhoist::cases {
void expect_right(const test::Result& result);
void expect_served(Vehicle vehicle, const test::Result& result, int line);
}  // namespace gemmhoist::cases

#define SKIP_UNLESS_USABLE(vehicle) \
  if (const std::string why = ::gemmhoist::cases::why_not(vehicle); !why.empty()) GTEST_SKIP() << why
