// Cases 23 to 29 and the rest of process life: fork, exit, threads, constructors, dlclose.
#include <algorithm>

#include "cases/on_vehicle.hpp"

namespace gemmhoist::cases {
namespace {

using enum Vehicle;

constexpr int kExitCode = 7;  // of the exit scenarios

// OpenBLAS frees its buffers when it is unloaded, and stops its threads when the process forks: calls of
// other threads at that moment crash or hang, with this library or without. What is asked here is what this
// library adds; so the CPU BLAS is one that minds neither.
test::Environment over_plain_blas() {
  return {{"GEMMHOIST_FALLBACK", beside_self("libplain_blas.so")}};
}

using Case23 = OnVehicle;
TEST_P(Case23, ForkBetweenLargeProducts) {
  const test::Result result = play("forked around big");
  expect_right(result);
  if (on_device(GetParam())) {
    EXPECT_EQ(result.counter("calls_gpu"), 4) << result.out;
  }
}
TEST_P(Case23, ForkAmidCallsOfOtherThreads) {
  expect_right(play("forked amid calls", over_plain_blas()));
}
TEST_P(Case23, ForkAmidTheFirstCallOfAnotherThread) {
  for (int delay_us = 0; delay_us < 4000; delay_us += 400) {
    const test::Result result =
        play("forked amid the first call", {{"OPENBLAS_NUM_THREADS", "1"}}, std::to_string(delay_us));
    ASSERT_EQ(result.out.substr(0, 6), "right\n") << result.out << "after " << delay_us << " us";
    ASSERT_EQ(result.status, 0);
  }
}
TEST_P(Case23, ForkBeforeTheFirstLargeProduct) {
  expect_served("forked before big");
}
TEST_P(Case23, ExecAfterALargeProduct) {
  expect_served("exec after big");
}
PLAY_ON(Case23, cpu, sim, gpu);

using Case25 = OnVehicle;
TEST_P(Case25, ProductsInExitHandlersAndStaticDestructors) {
  for (const char* when : {"first", "again"}) {
    const test::Result result = play("exit handlers", {}, when);
    EXPECT_EQ(result.out,
              when == std::string("first") ? "right\nright\nright\n" : "right\nright\nright\nright\n");
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(result.status, kExitCode);
  }
}
TEST_P(Case25, ExitWhileOtherThreadsMultiply) {
  for (const char* how : {"exit", "quick_exit", "_exit"}) {
    for (int round = 0; round < 5; ++round) {
      const test::Result result = play("exit amid calls", over_plain_blas(), how);
      EXPECT_EQ(result.out, "leaving\n");
      EXPECT_EQ(result.err, "") << how;
      EXPECT_EQ(result.status, kExitCode) << how;
      EXPECT_LT(result.seconds, 10) << how;
    }
  }
}
TEST_P(Case25, AnotherThreadEndsTheProcess) {
  const test::Result result = play("exit by another thread", over_plain_blas());
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.status, kExitCode);
}
PLAY_ON(Case25, cpu, sim, gpu);

using Case28 = OnVehicle;
TEST_P(Case28, ThirtyTwoThreadsOnBothSidesOfTheThreshold) {
  // One thread a product: 32 callers are parallel enough, and OpenBLAS' own pool would be tested instead.
  expect_served("many threads", {{"OPENBLAS_NUM_THREADS", "1"}});
}
TEST_P(Case28, ThreadsThatComeAndGo) {
  expect_served("short-lived threads");
}
PLAY_ON(Case28, cpu, sim, gpu, automatic);

using ThreadMode = OnVehicle;
TEST_P(ThreadMode, SmallProductsOfAThreadGoToTheGpu) {
  expect_right(play("small products of a thread on the GPU", {{"GEMMHOIST_ROUTE", "auto"}}));
}
PLAY_ON(ThreadMode, sim, gpu);

using Case29 = OnVehicle;
TEST_P(Case29, FirstLargeProductOnATinyStack) {
  // 16 KiB where the GPU serves; OpenBLAS itself needs 256.
  expect_served("small stack", {}, on_device(GetParam()) ? "16" : "256");
}
TEST_P(Case29, FirstLargeProductInAConstructor) {
  const test::Result result = play("constructor multiplies", {}, beside_self("libmultiplies_when_loaded.so"));
  expect_right(result);
  if (on_device(GetParam())) {
    EXPECT_GT(result.counter("calls_gpu"), 0) << result.out;
  }
  EXPECT_LT(result.seconds, 15);
}
PLAY_ON(Case29, cpu, sim, gpu);

// --- promises 4 and 5 beyond the cases ---

using Life = OnVehicle;
TEST_P(Life, CancelledThreadsLeaveWholeResults) {
  expect_served("cancelled while waiting");
}
TEST_P(Life, OpenedAndClosedAsAPlugin) {
  test::Environment environment = environment_of(GetParam());
  environment.erase("LD_PRELOAD");
  const test::Result result =
      test::run(scenario_command("opened and closed", library_of(GetParam())), environment);
  expect_right(result);
}
TEST_P(Life, ErrnoIsKept) {
  expect_served("errno kept");
}
TEST_P(Life, SignalsAreTheHosts) {
  expect_served("signals are the host's");
}
TEST_P(Life, TimersInterruptNothing) {
  expect_served("interrupted by a timer");
}
TEST_P(Life, FloatingPointEnvironmentIsKept) {
  expect_served("floating point kept");
}
PLAY_ON(Life, cpu, sim, gpu);

using LifeOnDevice = OnVehicle;
TEST_P(LifeOnDevice, FloatingPointEnvironmentMakesNoDifference) {
  expect_served("floating point makes no difference");
}
PLAY_ON(LifeOnDevice, sim, gpu);

}  // namespace
}  // namespace gemmhoist::cases
