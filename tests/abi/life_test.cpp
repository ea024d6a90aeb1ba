// The library in the life of a process: loading, threads, fork, constructors, exit, shells.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "abi/installed_blas.hpp"
#include "abi/process.hpp"

namespace gemmhoist::test {
namespace {

TEST(Life, PreloadedTrueIsSilentAndQuick) {
  const Result result = run({"/bin/true"}, preloaded());
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out + result.err, "");
  std::array<double, 60> plain{}, served{};
  for (std::size_t i = 0; i < plain.size(); ++i) {  // interleaved: both meet the same noise
    plain[i] = run({"/bin/true"}).seconds;
    served[i] = run({"/bin/true"}, preloaded()).seconds;
  }
  // The quietest of each: whatever else runs on the machine only adds.
  const double added =
      *std::min_element(served.begin(), served.end()) - *std::min_element(plain.begin(), plain.end());
  RecordProperty("added_us", static_cast<int>(added * 1e6));
  EXPECT_LE(added, 1e-3);
}

TEST(Life, SleepOpensNoDeviceAndMakesNoThread) {
  const Result strace = run({"strace", "-f", "-E", "LD_PRELOAD=" + library(), "/bin/sleep", "1"});
  if (strace.status == 127) GTEST_SKIP() << "strace is not installed here";
  if (strace.err.find("exited with 0") == std::string::npos)
    GTEST_SKIP() << "strace may not trace here: " << strace.err;
  EXPECT_NE(strace.err.find(library()), std::string::npos);  // it was loaded indeed
  EXPECT_EQ(strace.err.find("/dev/nvidia"), std::string::npos) << strace.err;
  EXPECT_EQ(strace.err.find("libcuda"), std::string::npos) << strace.err;
  // The calls clone and clone3; a folder may have the word in its name.
  EXPECT_EQ(strace.err.find("clone("), std::string::npos) << strace.err;
  EXPECT_EQ(strace.err.find("clone3("), std::string::npos) << strace.err;
}

TEST(Life, ShellThatRunsManyPrograms) {
  const std::string loop = "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done; echo done";
  double added = 1e9;
  for (int round = 0; round < 3; ++round) {  // processor time of the quietest round: other tests run beside
    const Result plain = run({"/bin/sh", "-c", loop});
    const Result served = run({"/bin/sh", "-c", loop}, preloaded());
    EXPECT_EQ(served.out, "done\n");
    EXPECT_EQ(served.err, "");
    added = std::min(added, served.cpu_seconds - plain.cpu_seconds);
  }
  EXPECT_LE(added, 200 * 1e-3);
}

TEST(Life, FirstCallsOnManyThreads) {
  for (int round = 0; round < 5; ++round) {
    for (const char* name : {"calls_openblas", "calls_alone"}) {
      const Result result = run({program(name), "counters", "threads", "sgemm_"}, preloaded());
      EXPECT_EQ(result.status, 0) << result.out << result.err;
      EXPECT_EQ(result.counter("calls_cpu"), 16 * 20);
    }
  }
}

TEST(Life, FirstCallInAForkedChild) {
  const Result result = run({program("calls_alone"), "counters", "fork", "cblas_sgemm"}, preloaded());
  EXPECT_EQ(result.out.substr(0, 6), "right\n");
  EXPECT_EQ(result.counter("calls_cpu"), 1);
  EXPECT_EQ(result.err, "");
}

TEST(Life, FirstCallInAConstructor) {
  for (const char* name : {"calls_openblas", "calls_alone"}) {
    const Result result =
        run({program(name), "once", "cblas_sgemm", "32", "open", program("libcalls_when_loaded.so")},
            preloaded());
    EXPECT_EQ(result.out, "constructor: 12\nright\n") << result.err;
    EXPECT_EQ(result.err, "");
  }
}

TEST(Life, CallInAnExitHandlerKeepsTheExitCode) {
  const Result result = run({program("calls_openblas"), "atexit", "cblas_sgemm"}, preloaded());
  EXPECT_EQ(result.out, "right\n");
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.status, 7);
}

// Opened late, after libraries that used up the loader's spare thread-local storage.
TEST(Life, OpenedAfterMuchThreadLocalStorage) {
  std::vector<std::string> command = {program("calls_openblas"), "once", "cblas_sgemm", "32"};
  for (int i = 0; i < 4; ++i) {
    command.push_back("open");
    command.push_back(program("libtls_heavy_" + std::to_string(i) + ".so"));
  }
  command.push_back("open");
  command.push_back(library());
  const Result result = run(command);
  EXPECT_EQ(result.out, "right\n");
  EXPECT_EQ(result.status, 0);
}

}  // namespace
}  // namespace gemmhoist::test
