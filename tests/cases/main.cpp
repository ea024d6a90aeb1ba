// The cases as one binary: a driver of tests, and the processes that it drives.
#include <gtest/gtest.h>

#include <cstring>

#include "cases/scenario.hpp"
#include "cases/vehicle.hpp"

int main(int argc, char** argv) {
  if (argc >= 3 && std::strcmp(argv[1], "--play") == 0) {
    return gemmhoist::cases::run_scenario(argv[2], argc > 3 ? argv[3] : "");
  }
  testing::InitGoogleTest(&argc, argv);
  gemmhoist::cases::find_libraries();
  return RUN_ALL_TESTS();
}
