// Cases 1 to 10: numbers. Each scenario runs SMALL and BIG, in both orders and all transposes.
#include <fstream>

#include "cases/on_vehicle.hpp"

namespace gemmhoist::cases {
namespace {

using enum Vehicle;

using Case01 = OnVehicle;
TEST_P(Case01, NanInCIsNotReadWhenBetaIsZero) {
  expect_served("nan in C");
}
PLAY_ON(Case01, cpu, sim, gpu);

using Case02 = OnVehicle;
TEST_P(Case02, AlphaZeroReadsNeitherOperand) {
  const test::Result result = play("alpha zero");
  expect_right(result);
  EXPECT_GT(result.counter("calls_trivial"), 0);
  EXPECT_EQ(result.counter("gpu_starts"), 0);
}
PLAY_ON(Case02, cpu, sim, gpu);

using Case03 = OnVehicle;
TEST_P(Case03, NoKScalesC) {
  const test::Result result = play("no k");
  expect_right(result);
  EXPECT_GT(result.counter("calls_trivial"), 0);
  EXPECT_EQ(result.counter("gpu_starts"), 0);
}
PLAY_ON(Case03, cpu, sim, gpu);

using Case04 = OnVehicle;
TEST_P(Case04, NanAndInfinityReachTheirColumnsAlone) {
  expect_served("nan and infinity");
}
PLAY_ON(Case04, cpu, sim, gpu);

using Case05 = OnVehicle;
TEST_P(Case05, RelativeErrorIsThatOfSinglePrecision) {
  expect_served("frobenius error");
  expect_served("frobenius error", {{"NVIDIA_TF32_OVERRIDE", "1"}});
}
TEST_P(Case05, IdentityGivesTheSameBits) {
  expect_served("identity");
  expect_served("identity", {{"NVIDIA_TF32_OVERRIDE", "1"}});
}
PLAY_ON(Case05, cpu, sim, gpu);

using Case06 = OnVehicle;
TEST_P(Case06, OddSizes) {
  expect_served("odd sizes");
}
PLAY_ON(Case06, cpu, sim, gpu);

using Case07 = OnVehicle;
TEST_P(Case07, OperandsEndAtPagesWithoutAccess) {
  expect_served("guard pages");
}
PLAY_ON(Case07, cpu, sim, gpu);

using Case08 = OnVehicle;
TEST_P(Case08, SpansBeyond32Bits) {
  const test::Result result = play("long leading dimensions");
  if (result.out.find("no address space") == 0) GTEST_SKIP() << "10 GB of address space are not to be had";
  cases::expect_served(GetParam(), result, __LINE__);
}
TEST_P(Case08, SquareOf46341) {
  if (GetParam() == sim) GTEST_SKIP() << "the simulated device has no memory and no speed for it";
  std::ifstream file("/proc/meminfo");
  std::string name;
  long kib = 0, available_kib = 0;
  for (std::string unit; file >> name >> kib && std::getline(file, unit);) {
    if (name == "MemAvailable:") available_kib = kib;
  }
  constexpr long kNeededKib = 12L << 20;  // C has 8.6 GB; and some peace for others
  if (available_kib < kNeededKib) GTEST_SKIP() << "C has 8.6 GB, and too little memory is available";
  if (GetParam() == cpu && why_not(gpu) != "" && std::getenv("GEMMHOIST_TEST_LARGE") == nullptr) {
    GTEST_SKIP() << "plain OpenBLAS' own arithmetic; GEMMHOIST_TEST_LARGE=1 runs it here";
  }
  expect_served("square of 46341");
}
PLAY_ON(Case08, cpu, sim, gpu);

using Case09 = OnVehicle;
TEST_P(Case09, OperandsShareMemory) {
  expect_served("shared operands");
}
TEST_P(Case09, NothingBesideCChangesWhenItOverlapsA) {
  expect_served("C over A");
}
PLAY_ON(Case09, cpu, sim, gpu);

using Case10 = OnVehicle;
TEST_P(Case10, FourThreadsFillRowBlocksOfOneC) {
  expect_served("row blocks");
}
PLAY_ON(Case10, cpu, sim, gpu);

// Not one case but the ground of all: sizes, orders, transposes, kinds of values, both names.
using Numbers = OnVehicle;
TEST_P(Numbers, AllWays) {
  expect_served("all ways");
}
TEST_P(Numbers, ThroughTheThreshold) {
  expect_served("through the threshold");
}
PLAY_ON(Numbers, cpu, sim, gpu, automatic);

}  // namespace
}  // namespace gemmhoist::cases
