// Cases 30 to 37: resources, faults, CUDA programs, speed of a start that does not happen.
#include <algorithm>
#include <limits>

#include "cases/on_vehicle.hpp"

namespace gemmhoist::cases {
namespace {

using enum Vehicle;

long lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

TEST(Case30, NoDeviceVisible) {
  for (const char* visible : {"", "-1", "99", "GPU-00000000-0000-0000-0000-000000000000"}) {
    for (const char* route : {"gpu", "auto"}) {
      const test::Result result =
          play(automatic, "all ways",
               {{"CUDA_VISIBLE_DEVICES", visible}, {"GEMMHOIST_ROUTE", route}, {"CASES_BIG", "300"}});
      EXPECT_EQ(result.out.substr(0, 6), "right\n") << result.out;
      EXPECT_EQ(result.status, 0);
      EXPECT_LE(lines(result.err), 1) << result.err;
      EXPECT_EQ(result.counter("calls_gpu"), 0) << result.out;
    }
  }
}

using Case31 = OnVehicle;
TEST_P(Case31, MatricesLargerThanTheDevice) {
  // Three or more operands' worth less than the products need.
  expect_served("larger than the device", {{"GEMMHOIST_DEVICE_MIB", GetParam() == sim ? "1" : "16"}});
}
PLAY_ON(Case31, sim, gpu);
TEST(Case31Sim, AlmostNoMemoryOnTheDevice) {
  SKIP_UNLESS_USABLE(sim);
  const test::Result result = play(sim, "larger than the device", {{"GEMMHOIST_SIM_MEMORY_MIB", "1"}});
  expect_right(result);
}
TEST(Case31Gpu, AnotherProcessLeaves200MBAndEnds) {
  SKIP_UNLESS_USABLE(gpu);
  const test::Result result = play(gpu, "little memory left");
  if (result.out.find("the GPU could not be filled") == 0) GTEST_SKIP() << "the GPU could not be filled";
  EXPECT_EQ(result.out.substr(0, 6), "right\n") << result.out;
  EXPECT_LE(lines(result.err), 1) << result.err;
  EXPECT_GT(result.counter("calls_gpu"), 0) << result.out;
}

// Device calls of the process that plays `scenario` undisturbed.
int device_calls(const std::string& scenario, test::Environment environment) {
  environment["GEMMHOIST_SIM_REPORT"] = "1";
  const test::Result result = play(sim, scenario, environment);
  const std::string text = "simulated device: ";
  const auto at = result.err.find(text);
  return at == std::string::npos ? 0 : std::stoi(result.err.substr(at + text.size()));
}

using Case32 = testing::TestWithParam<const char*>;
TEST_P(Case32, EveryDeviceCallFails) {
  SKIP_UNLESS_USABLE(sim);
  // Few threads and little pinned memory: each child makes them anew.
  const test::Environment small = {{"GEMMHOIST_HOST_THREADS", "1"}, {"GEMMHOIST_PINNED_MIB", "16"}};
  const int calls = device_calls("two products", small);
  ASSERT_GT(calls, 30);
  const test::Result result =
      play(sim, "every device call fails", small, std::to_string(calls + 2) + " " + GetParam());
  EXPECT_EQ(result.out.substr(0, 6), "right\n") << result.out << result.err;
  EXPECT_EQ(result.status, 0);
  RecordProperty("device_calls", calls);
}
std::string fault_name(const testing::TestParamInfo<const char*>& fault) {
  std::string name = fault.param;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(With, Case32, testing::Values("device_error 0", "out_of_memory 0", "device_lost 1"),
                         fault_name);

TEST(Deadline, CpuFinishesWhatAHangingDeviceLeaves) {
  SKIP_UNLESS_USABLE(sim);
  const int calls = device_calls("two products", {});
  for (const int before_the_end : {1, 7, 20}) {
    const test::Result result = play(sim, "device hangs",
                                     {{"GEMMHOIST_SIM_HANG_AT", std::to_string(calls - before_the_end)},
                                      {"GEMMHOIST_DEADLINE_MS", "300"}});
    EXPECT_EQ(result.out.substr(0, 6), "right\n") << result.out;
    EXPECT_EQ(result.status, 0);
    EXPECT_LE(lines(result.err), 1) << result.err;
    EXPECT_LT(result.seconds, 10);
  }
}

TEST(Case33, StateOfACudaProgramIsItsOwn) {
  SKIP_UNLESS_USABLE(gpu);
  cases::expect_served(gpu, play(gpu, "in a CUDA program"), __LINE__);
}

using Case34 = OnVehicle;
TEST_P(Case34, OperandsInEveryKindOfMapping) {
  expect_served("all mappings");
  expect_served("mappings that change");
}
PLAY_ON(Case34, cpu, sim, gpu);
TEST(Case34Gpu, OperandsInMemoryThatCudaKnows) {
  SKIP_UNLESS_USABLE(gpu);
  cases::expect_served(gpu, play(gpu, "pinned operands"), __LINE__);
}

using Case35 = OnVehicle;
TEST_P(Case35, LittleLockedMemory) {
  std::vector<std::string> command = {"sh", "-c", "ulimit -l 64 && exec \"$0\" \"$@\""};
  for (const std::string& word : scenario_command("little locked memory")) command.push_back(word);
  cases::expect_served(GetParam(), test::run(command, environment_of(GetParam())), __LINE__);
}
PLAY_ON(Case35, cpu, sim, gpu);

// One call that no GPU is worth: nothing of CUDA is loaded, and the process takes as long as with OpenBLAS
// alone.
TEST(Case37, OneProductOf300StartsNothing) {
  const test::Result result = play(automatic, "one product", {}, "300");
  expect_right(result);
  EXPECT_EQ(result.counter("gpu_starts"), 0);
  EXPECT_EQ(result.counter("calls_cpu"), 1);
  EXPECT_EQ(result.out.find("state: starting"), std::string::npos) << result.out;
}
TEST(Case37, OneProductOf300CostsUnderAMillisecondMore) {
  constexpr double kMost = 1e-3;
  double plain = std::numeric_limits<double>::max(), served = plain;
  // Interleaved, the quietest of each: whatever else runs on the machine only adds, so a busy one is asked
  // longer.
  for (int i = 0; i < 40 || (i < 400 && served - plain >= kMost); ++i) {
    plain = std::min(plain, play_plain("one product", "300").seconds);
    served = std::min(served, play(automatic, "one product", {}, "300").seconds);
  }
  RecordProperty("added_us", static_cast<int>((served - plain) * 1e6));
  EXPECT_LT(served - plain, kMost);
}

}  // namespace
}  // namespace gemmhoist::cases
