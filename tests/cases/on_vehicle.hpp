// Fixture of the cases that are played on several vehicles.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "cases/vehicle.hpp"

namespace gemmhoist::cases {

class OnVehicle : public testing::TestWithParam<Vehicle> {
 protected:
  void SetUp() override { SKIP_UNLESS_USABLE(GetParam()); }
  test::Result play(const std::string& scenario, const test::Environment& more = {},
                    const std::string& argument = "") const {
    return cases::play(GetParam(), scenario, more, argument);
  }
  // The scenario was right, silent, and served by this vehicle's route.
  void expect_served(const std::string& scenario, const test::Environment& more = {},
                     const std::string& argument = "") const {
    cases::expect_served(GetParam(), play(scenario, more, argument), __LINE__);
  }
};

inline std::string vehicle_name(const testing::TestParamInfo<Vehicle>& info) {
  return to_string(info.param);
}

}  // namespace gemmhoist::cases

// Instantiates a case (an alias of OnVehicle) on the vehicles named.
#define PLAY_ON(case_name, ...) \
  INSTANTIATE_TEST_SUITE_P(On, case_name, testing::Values(__VA_ARGS__), ::gemmhoist::cases::vehicle_name)
