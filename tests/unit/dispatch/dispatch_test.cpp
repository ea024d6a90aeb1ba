// Dispatch in processes of its own: a process for each scenario, on simulated devices, with a CPU BLAS that
// takes as long as a model says.
#include "dispatch/dispatch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "abi/process.hpp"
#include "scenario.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INSTRUMENTED 1
#else
#define INSTRUMENTED 0
#endif

namespace gemmhoist::test {
namespace {

std::string required(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr) throw std::runtime_error(std::string(variable) + " is not set: run by meson test");
  return value;
}

class Dispatch : public testing::Test {
 protected:
  Result play(const std::string& scenario, Environment more = {}) {
    Environment environment = {
        {"GEMMHOIST_FALLBACK", required("GEMMHOIST_TEST_SLOW_BLAS")},
        {"GEMMHOIST_TEST_CPU_FLOPS", "136e6"},
        {"GEMMHOIST_TEST_CALLS_BACK", required("GEMMHOIST_TEST_CALLS_BACK")},
        {"GEMMHOIST_LOG_FILE", file("log")},
        {"GEMMHOIST_HOST_THREADS", "1"},
        {"GEMMHOIST_PINNED_MIB", "16"},
    };
    for (const auto& [name, value] : more) environment[name] = value;
    std::filesystem::remove(file("log"));
    return run({"/proc/self/exe", "--scenario", scenario}, environment);
  }
  // Right, as expected, and as many lines on stderr as are allowed. Instrumented code is some ten times
  // slower, while the rests after a failure are as long as ever: there the calls may come otherwise, but
  // every product is right and nothing is reported.
  Result expect_right(const std::string& scenario, const Environment& more = {}, long lines = 0) {
    Result result = play(scenario, more);
    // What is decided by times may come otherwise on a busy machine, though hardly three times in a row.
    for (int again = 0; again < 2 && !INSTRUMENTED && result.out.rfind("otherwise: ", 0) == 0; ++again) {
      result = play(scenario, more);
    }
    EXPECT_EQ(result.err.find("Sanitizer"), std::string::npos) << scenario << ": " << result.err;
    EXPECT_EQ(result.err.find("runtime error"), std::string::npos) << scenario << ": " << result.err;
    if (INSTRUMENTED && result.out.rfind("otherwise: ", 0) == 0) return result;
    EXPECT_EQ(result.out.substr(0, 6), "right\n") << scenario << ": " << result.out << result.err;
    EXPECT_EQ(result.status, 0) << scenario;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), lines)
        << scenario << ": " << result.err;
    return result;
  }
  std::string file(const std::string& name) const { return scratch_.path() + "/" + name; }
  std::string contents(const std::string& name) const {
    std::ifstream stream(file(name));
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  }

 private:
  ScratchDirectory scratch_;
};

// Where nothing is decided by times, the CPU is as fast as it can.
const Environment kForced = {{"GEMMHOIST_ROUTE", "gpu"}, {"GEMMHOIST_TEST_CPU_FLOPS", "0"}};
const Environment kForcedQuick = {{"GEMMHOIST_ROUTE", "gpu"},
                                  {"GEMMHOIST_TEST_CPU_FLOPS", "0"},
                                  {"GEMMHOIST_DEADLINE_MS", INSTRUMENTED ? "1500" : "500"}};
const Environment kSlowest = {{"GEMMHOIST_TEST_CPU_FLOPS", "20e6"}};

using Start = Dispatch;
TEST_F(Start, SmallCallsNeverStart) {
  expect_right("small calls never start");
}
TEST_F(Start, TiersUp) {
  expect_right("tiers up");
}
TEST_F(Start, OneHugeCallWaits) {
  expect_right("one huge call waits", kSlowest);
}
TEST_F(Start, HangsForNoLongerThanTheCpuWouldTake) {
  EXPECT_EQ(play("a start that hangs", {{"GEMMHOIST_TEST_CPU_FLOPS", "60e6"}}).status, 0);
}
TEST_F(Start, ForcedCallsWait) {
  expect_right("forced calls wait", kForced);
}
TEST_F(Start, ThreadsHaveModes) {
  expect_right("threads have modes");
}
TEST_F(Start, NoDevice) {
  expect_right("no device opens", kForced);
}
TEST_F(Start, OpeningFailsTwice) {
  expect_right("opening fails twice", kForced);
}
TEST_F(Start, EngineFailsOnce) {
  expect_right("engine fails once", kForced);
}
TEST_F(Start, FailedStartsAreEarnedAnew) {
  expect_right("failed starts are earned anew");
}
TEST_F(Start, DeviceIsLostWhileMeasured) {
  expect_right("device is lost while measured", kForced);
}
TEST_F(Start, AllDevices) {
  expect_right("all devices", kForced);
}
TEST_F(Start, OneOfTwoOpens) {
  expect_right("one of two opens", kForced);
}
TEST_F(Start, ConstructorAtSecondStart) {
  expect_right("constructor at second start", kForced);
}

using Failure = Dispatch;
TEST_F(Failure, Transient) {
  expect_right("transient failure");
}
TEST_F(Failure, MemoryGoesAndComesBack) {
  expect_right("memory goes and comes back");
}
TEST_F(Failure, MemoryNeverComesBack) {
  expect_right("memory never comes back", kForced);
}
TEST_F(Failure, InARow) {
  expect_right("failures in a row", kForced, 1);
}
TEST_F(Failure, Together) {
  expect_right("failures together", kForced);
}
TEST_F(Failure, IsForgottenAfterSuccess) {
  expect_right("success forgets failures", kForced);
}
TEST_F(Failure, DeviceIsLost) {
  expect_right("device is lost", {}, 1);
}
TEST_F(Failure, OneDeviceOfThreeIsLost) {
  expect_right("one device of three is lost", kForced, 1);
}
TEST_F(Failure, HangThatPasses) {
  expect_right("hang that passes", kForcedQuick);
}
TEST_F(Failure, HangForGood) {
  expect_right("hang for good", kForcedQuick, 1);
}
TEST_F(Failure, ManyCallersOfAHangingDevice) {
  expect_right("many callers of a hanging device", kForcedQuick);
}

using Correction = Dispatch;
TEST_F(Correction, GpuThatDisappoints) {
  expect_right("gpu that disappoints");
}
TEST_F(Correction, GpuThatDisappointsSeveral) {
  expect_right("gpu that disappoints several");
}
TEST_F(Correction, CpuThatWasBusy) {
  expect_right("cpu that was busy", {{"GEMMHOIST_TEST_CPU_FLOPS", "272e6"}});
}
TEST_F(Correction, QueueOfCallers) {
  expect_right("queue of callers");
}

using Life = Dispatch;
TEST_F(Life, Fork) {
  expect_right("fork while up", kForced);
  expect_right("fork while starting", kForced);
  expect_right("fork while cold", kForced);
  expect_right("fork after a failed start", kForced);
}
TEST_F(Life, Exit) {
  EXPECT_EQ(expect_right("exit while up", kForced).out, "right\ncpu:gpu_lost\n");
  EXPECT_EQ(expect_right("exit while starting", kForced).out, "right\ncpu:gpu_lost\n");
  EXPECT_EQ(expect_right("exit while callers wait", kForced).out, "right\ncpu:gpu_lost\n");
  EXPECT_LT(expect_right("exit joins a waiting caller", kForced).seconds, 5);
}
// The exit does not wait for a worker that the driver does not let go.
TEST_F(Life, ExitWhileItHangs) {
  EXPECT_LT(expect_right("exit while it hangs", kForcedQuick).seconds, INSTRUMENTED ? 20 : 2.5);
}

// A thread with a 16 KiB stack has some 12 KiB of it for its own calls and ours (thread descriptor, the
// program's thread-local storage and glibc's frames take the rest).
TEST_F(Life, StackOfACaller) {
  if (INSTRUMENTED) GTEST_SKIP() << "instrumented frames are larger";
  const Environment logged = {
      {"GEMMHOIST_ROUTE", "gpu"}, {"GEMMHOIST_LOG", "calls"}, {"GEMMHOIST_TRACE", file("trace")}};
  for (const char* scenario : {"stack of a caller", "stack of a rescued caller"}) {
    const Result result = play(scenario, logged);
    EXPECT_EQ(result.status, 0) << result.out;
    EXPECT_GT(result.counter("stack"), 200) << result.out;
    EXPECT_LT(result.counter("stack"), 4096) << scenario;
    RecordProperty(scenario, static_cast<int>(result.counter("stack")));
    std::printf("%s: %ld bytes\n", scenario, result.counter("stack"));
  }
}

using ProfileFile = Dispatch;
TEST_F(ProfileFile, IsWrittenAndReadBack) {
  const Environment with_profile = {{"GEMMHOIST_PROFILE", file("profile")}};
  expect_right("learns nothing", with_profile);
  EXPECT_FALSE(std::filesystem::exists(file("profile")));
  expect_right("learns and measures", with_profile);
  const std::string written = contents("profile");
  EXPECT_NE(written.find("measured = 1\n"), std::string::npos) << written;
  EXPECT_NE(written.find("cpu_flops_per_s."), std::string::npos) << written;
  expect_right("learns nothing", with_profile);  // and overwrites nothing
  EXPECT_EQ(contents("profile"), written);
  expect_right("knows from the first call", with_profile);
}

int play_here(const std::string& name) {
  for (const auto& scenarios : {start_scenarios(), failure_scenarios(), life_scenarios()}) {
    for (const Scenario& scenario : scenarios) {
      if (scenario.name != name) continue;
      dispatch::on_load();
      // As the library's destructor would: after every exit handler.
      std::atexit(dispatch::on_unload);
      const std::string wrong = scenario.play();
      std::printf("%s\n", wrong.empty() ? "right" : wrong.c_str());
      std::fflush(stdout);
      return wrong.empty() ? 0 : 1;
    }
  }
  std::printf("no scenario %s\n", name.c_str());
  return 2;
}

}  // namespace
}  // namespace gemmhoist::test

int main(int count, char** arguments) {
  if (count == 3 && std::string(arguments[1]) == "--scenario")
    return gemmhoist::test::play_here(arguments[2]);
  testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
