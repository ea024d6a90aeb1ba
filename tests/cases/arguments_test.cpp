// Cases 11 to 27 as far as routes and vehicles make a difference; tests/abi has the rest.
#include <algorithm>
#include <filesystem>

#include "cases/on_vehicle.hpp"

namespace gemmhoist::cases {
namespace {

using enum Vehicle;

using Case11 = OnVehicle;
TEST_P(Case11, ReportsAreOpenBlasOwnAndTheNextCallWorks) {
  const test::Result plain = play_plain("illegal between legal");
  const test::Result served = play("illegal between legal");
  EXPECT_EQ(plain.status, 0) << plain.out;
  EXPECT_EQ(served.status, 0) << served.out;
  EXPECT_EQ(served.err, plain.err);
  // What follows the verdict are the library's counters.
  ASSERT_GE(served.out.size(), plain.out.size());
  EXPECT_EQ(served.out.substr(0, plain.out.size()), plain.out);
  EXPECT_EQ(served.counter("calls_illegal"), 6);
  EXPECT_NE((plain.out + plain.err).find("SGEMM"), std::string::npos) << "there was no report to compare";
}
PLAY_ON(Case11, cpu, sim, gpu);

using Case13 = OnVehicle;
TEST_P(Case13, EmptyProductsStartNothing) {
  const test::Result result = play("empty");
  expect_right(result);
  EXPECT_EQ(result.counter("calls_trivial"), 12);
  EXPECT_EQ(result.counter("gpu_starts"), 0);
  EXPECT_TRUE(result.out.find("state: cold") != std::string::npos ||
              result.out.find("state: absent") != std::string::npos)
      << result.out;
}
PLAY_ON(Case13, cpu, sim, gpu, automatic);

using Case14 = OnVehicle;
TEST_P(Case14, LettersAndWordsWithAndWithoutLengths) {
  expect_served("letters");
}
PLAY_ON(Case14, cpu, sim, gpu);

using Case15 = OnVehicle;
TEST_P(Case15, EachCallIsCountedOnce) {
  const test::Result result = play("probe");
  cases::expect_served(GetParam(), result, __LINE__);
  EXPECT_EQ(result.counter("calls_cblas"), 1);
  EXPECT_EQ(result.counter("calls_fortran"), 0);
  EXPECT_EQ(result.counter(on_device(GetParam()) ? "calls_gpu" : "calls_cpu"), 1);
}
PLAY_ON(Case15, cpu, sim, gpu);

// A machine without CUDA, or one that hides it: the driver's library is not to be found.
TEST(Case20, WithoutCudaEveryRouteIsRightAndSilent) {
  std::string hide;
  for (const char* path : {"/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1",
                           "/usr/local/cuda/compat/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"}) {
    std::error_code none;
    const auto target = std::filesystem::canonical(path, none);
    if (!none) hide += "mount --bind /dev/null " + target.string() + " && ";
  }
  for (const char* route : {"auto", "cpu", "gpu"}) {
    test::Environment environment =
        environment_of(automatic, {{"GEMMHOIST_ROUTE", route}, {"CASES_BIG", "300"}});
    std::vector<std::string> command = scenario_command("all ways");
    if (!hide.empty()) {
      if (test::run({"unshare", "-rm", "true"}).status != 0)
        GTEST_SKIP() << "CUDA is here and cannot be hidden";
      command.insert(command.begin(), {"unshare", "-rm", "sh", "-c", hide + "exec \"$0\" \"$@\""});
    }
    const test::Result result = test::run(command, environment);
    expect_right(result);
    EXPECT_EQ(result.counter("calls_gpu"), 0) << result.out;
    EXPECT_GT(result.counter("calls_cpu"), 0) << result.out;
  }
}

using Case27 = OnVehicle;
// The scenario's own text: all lines before the counters, which a process without the library lacks.
std::string own_text(const std::string& out) {
  return out.substr(0, out.find("calls_"));
}
TEST_P(Case27, StdoutIsTheProgramsOwnInEveryMode) {
  const std::string plain = play_plain("all ways").out;
  ASSERT_EQ(plain, "right\n");
  const test::ScratchDirectory scratch;
  const test::Environment modes[] = {
      {},
      {{"GEMMHOIST_LOG", "summary"}},
      {{"GEMMHOIST_LOG", "calls"}},
      {{"GEMMHOIST_LOG_FILE", scratch.path() + "/log"}, {"GEMMHOIST_TRACE", scratch.path() + "/trace"}},
      {{"GEMMHOIST_LOG", "bad value"},
       {"GEMMHOIST_PINNED_MIB", "-1"},
       {"GEMMHOIST_FALLBACK", "/no/such/file"}},
  };
  for (const test::Environment& mode : modes) {
    const test::Result result = play("all ways", mode);
    EXPECT_EQ(own_text(result.out), plain);
    EXPECT_EQ(result.status, 0);
  }
}
PLAY_ON(Case27, cpu, sim, gpu, automatic);

}  // namespace
}  // namespace gemmhoist::cases
