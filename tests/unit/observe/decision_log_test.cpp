#include "observe/decision_log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cfenv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "in_child.hpp"
#include "observe/counters.hpp"
#include "observe/log_text.hpp"
#include "temporary_folder.hpp"

namespace gemmhoist::observe {
namespace {

using nlohmann::json;

CallRecord gpu_record() {
  CallRecord r{};
  r.spelling = "cblas_sgemm";
  r.call.m = r.call.n = r.call.k = 4096;
  r.call.trans_b = Transpose::yes;
  r.call.lda = 4096;
  r.call.ldb = 4100;
  r.call.ldc = 4200;
  r.call.alpha = 1;
  r.call.beta = 0.5f;
  r.route = "gpu";
  r.reason = "gpu_faster";
  r.kernel = "sgemm_fp32_128x256x16_s6_sm80";
  r.predicted_cpu_s = 0.118;
  r.predicted_gpu_s = 0.0074;
  r.measured_s = 0.00786;
  r.kernel_s = 0.0031;
  r.submit_s = 0.0004;
  return r;
}

CallRecord cpu_record() {
  CallRecord r{};
  r.spelling = "sgemm_";
  r.call.m = 8;
  r.call.n = 9;
  r.call.k = 10;
  r.route = "cpu";
  r.reason = "too_small";
  r.kernel = "";
  return r;
}

std::vector<json> parse_lines(const std::string& text) {
  std::vector<json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(json::parse(line));
  return lines;
}

TEST(LogText, ALineForPeople) {
  os::Line line;
  describe_call(line, gpu_record());
  EXPECT_STREQ(
      line.c_str(),
      "gemmhoist: cblas_sgemm NT m=4096 n=4096 k=4096 gpu (gpu_faster) 7.86 ms, predicted gpu 7.4 cpu "
      "118 ms, kernel 3.1 ms sgemm_fp32_128x256x16_s6_sm80");
}

TEST(LogText, TilesLeftToFp32) {
  CallRecord r = gpu_record();
  r.range_tiles = 1024;
  r.range_tiles_fp32 = 3;
  os::Line people, programs;
  describe_call(people, r);
  encode_call(programs, r);
  EXPECT_NE(std::string(people.c_str()).find(", tiles in fp32 3 of 1024"), std::string::npos);
  const json j = json::parse(programs.c_str());
  EXPECT_EQ(j["range_tiles"], 1024);
  EXPECT_EQ(j["range_tiles_fp32"], 3);
}

TEST(LogText, WhatIsNotKnownIsNotSaid) {
  os::Line line;
  describe_call(line, cpu_record());
  EXPECT_STREQ(line.c_str(), "gemmhoist: sgemm_ NN m=8 n=9 k=10 cpu (too_small)");
}

TEST(LogText, ALineForPrograms) {
  os::Line line;
  encode_call(line, gpu_record());
  const json j = json::parse(line.c_str());
  EXPECT_EQ(j["event"], "call");
  EXPECT_EQ(j["pid"], getpid());
  EXPECT_EQ(j["trans"], "NT");
  EXPECT_EQ(j["ldb"], 4100);
  EXPECT_EQ(j["beta"], 0.5);
  EXPECT_EQ(j["kernel"], "sgemm_fp32_128x256x16_s6_sm80");
  EXPECT_DOUBLE_EQ(j["measured_ms"], 7.86);
  EXPECT_DOUBLE_EQ(j["predicted_cpu_ms"], 118);
  EXPECT_DOUBLE_EQ(j["kernel_ms"], 3.1);
  EXPECT_DOUBLE_EQ(j["submit_ms"], 0.4);
  os::Line other;
  encode_call(other, cpu_record());
  EXPECT_TRUE(json::parse(other.c_str())["measured_ms"].is_null());
}

TEST(LogText, TheLongestLinesFit) {
  CallRecord r = gpu_record();
  r.spelling = "scipy_cblas_sgemm64_";
  r.reason = "worth_waiting_for_the_start";
  r.call.m = r.call.n = r.call.k = r.call.lda = r.call.ldb = r.call.ldc = INT64_MAX;
  r.call.alpha = -1.17549435e-38f;
  r.call.beta = NAN;
  r.route = "gpu+cpu";
  r.range_tiles = r.range_tiles_fp32 = INT64_MAX;
  r.measured_s = r.kernel_s = r.submit_s = r.predicted_cpu_s = r.predicted_gpu_s = 123456.123456789;
  os::Line people, programs, summary;
  describe_call(people, r);
  encode_call(programs, r);
  EXPECT_FALSE(people.overflowed());
  EXPECT_FALSE(programs.overflowed());
  EXPECT_TRUE(json::parse(programs.c_str())["beta"].is_null());
  reset_counters();
  for (int i = 0; i < static_cast<int>(Counter::count_); ++i) add(static_cast<Counter>(i), UINT64_MAX);
  encode_summary(summary);
  EXPECT_FALSE(summary.overflowed());
  EXPECT_EQ(json::parse(summary.c_str())["bytes_d2h"], UINT64_MAX);
  reset_counters();
}

TEST(DecisionLog, SilentByDefault) {
  const ChildResult r = in_child({}, [] {
    log_call(gpu_record());
    write_summary();
    return call_log_enabled() ? 1 : 0;
  });
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.error, "");
}

TEST(DecisionLog, SummaryAloneHasNoCallLines) {
  const ChildResult r = in_child({{"GEMMHOIST_LOG", "summary"}}, [] {
    add(Counter::calls_cpu, 5);
    add(Counter::calls_gpu, 7);
    add(Counter::calls_rescued, 1);
    add(Counter::gpu_starts);
    add(Counter::bytes_h2d, std::uint64_t{3} << 19);
    log_call(gpu_record());
    write_summary();
    return call_log_enabled() ? 1 : 0;
  });
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.error.find("cblas_sgemm"), std::string::npos);
  EXPECT_NE(r.error.find("products 13: gpu 7, cpu 5, begun on the gpu and finished on the cpu 1"),
            std::string::npos)
      << r.error;
  EXPECT_NE(r.error.find("starts 1,"), std::string::npos);
  EXPECT_NE(r.error.find("to device 1.5 MiB"), std::string::npos) << r.error;
}

TEST(DecisionLog, CallsGoToStderrAndToTheFile) {
  const TemporaryFolder folder;
  const std::string file = folder / "log-%p.jsonl";
  const ChildResult r = in_child({{"GEMMHOIST_LOG", "calls"}, {"GEMMHOIST_LOG_FILE", file}}, [] {
    log_call(gpu_record());
    log_call(cpu_record());
    write_summary();
    return call_log_enabled() ? 0 : 1;
  });
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.error.rfind("gemmhoist: cblas_sgemm NT m=4096", 0), 0u) << r.error;
  EXPECT_NE(r.error.find("\ngemmhoist: sgemm_ NN m=8 n=9 k=10 cpu (too_small)\n"), std::string::npos);
  ASSERT_EQ(folder.entries(), 1u);
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(folder.str())) path = entry.path();
  const std::vector<json> lines = parse_lines(read_text(path));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(path, folder / ("log-" + std::to_string(lines[0]["pid"].get<int>()) + ".jsonl"));
  EXPECT_EQ(lines[1]["spelling"], "sgemm_");
  EXPECT_EQ(lines[2]["event"], "summary");
}

TEST(DecisionLog, FileAloneLeavesStderrSilent_AlsoAfterChdir) {
  const TemporaryFolder folder;
  const ChildResult r = in_child({{"GEMMHOIST_LOG_FILE", "relative.jsonl"}}, [&] {
    if (chdir(folder.str().c_str()) != 0) return 3;
    log_call(gpu_record());
    if (chdir("/") != 0) return 4;
    log_call(gpu_record());
    return 0;
  });
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(parse_lines(read_text(folder / "relative.jsonl")).size(), 2u);
}

TEST(DecisionLog, AFileThatCannotBeWrittenIsOneLine) {
  const ChildResult r = in_child({{"GEMMHOIST_LOG_FILE", "/no/such/folder/log"}}, [] {
    for (int i = 0; i < 5; ++i) log_call(gpu_record());
    write_summary();
    return 0;
  });
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.error, "gemmhoist: cannot write GEMMHOIST_LOG_FILE=/no/such/folder/log\n");
}

TEST(DecisionLog, LinesOfManyThreadsStayWhole) {
  const TemporaryFolder folder;
  const ChildResult r = in_child({{"GEMMHOIST_LOG", "calls"}, {"GEMMHOIST_LOG_FILE", folder / "log"}}, [] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([] {
        for (int i = 0; i < 50; ++i) log_call(gpu_record());
      });
    for (std::thread& thread : threads) thread.join();
    return 0;
  });
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(parse_lines(read_text(folder / "log")).size(), 400u);
  std::istringstream people(r.error);
  int whole = 0;
  for (std::string line; std::getline(people, line); ++whole) {
    EXPECT_EQ(line.rfind("gemmhoist: cblas_sgemm NT", 0), 0u) << line;
    EXPECT_EQ(line.substr(line.size() - 4), "sm80") << line;
  }
  EXPECT_EQ(whole, 400);
}

TEST(DecisionLog, TheHostDoesNotNotice) {
  const ChildResult r = in_child({{"GEMMHOIST_LOG", "calls"}}, [] {
    feenableexcept(FE_INEXACT | FE_INVALID | FE_DIVBYZERO);  // a program that traps on every rounding
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return 2;
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);  // nobody reads: SIGPIPE by default ends the process
    errno = 1234;
    log_call(gpu_record());
    write_summary();
    warn(Warning::gpu_lost, "%s", "gone");
    close(STDERR_FILENO);
    log_call(gpu_record());
    return errno == 1234 && fegetexcept() == (FE_INEXACT | FE_INVALID | FE_DIVBYZERO) ? 0 : 1;
  });
  EXPECT_EQ(r.status, 0);
}

// Bytes of stack that a thread of this body uses: it runs on memory filled with a pattern, and what remains
// of that tells how deep it went.
std::size_t stack_used(void* (*body)(void*)) {
  static std::vector<unsigned char> stack(64 << 10);
  std::fill(stack.begin(), stack.end(), 0xA5);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack.data(), stack.size());
  pthread_t thread;
  if (pthread_create(&thread, &attributes, body, nullptr) != 0) return 0;
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  std::size_t untouched = 0;
  while (untouched < stack.size() && stack[untouched] == 0xA5) ++untouched;
  return stack.size() - untouched;
}

TEST(DecisionLog, LittleStack) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "sanitizers enlarge every frame";
#elif !defined(__OPTIMIZE__)
  GTEST_SKIP() << "without optimisation every frame is larger";
#endif
  const TemporaryFolder folder;
  const std::string number = folder / "used";
  const ChildResult r = in_child({{"GEMMHOIST_LOG", "calls"}, {"GEMMHOIST_LOG_FILE", folder / "log%p"}}, [&] {
    log_call(gpu_record());  // binds the symbols, which the loader does on the caller's stack
    const std::size_t idle = stack_used([](void*) -> void* { return nullptr; });
    const std::size_t logging = stack_used([](void*) -> void* {
      log_call(gpu_record());
      return nullptr;
    });
    std::ofstream(number) << logging - idle;
    return idle > 0 && logging > idle ? 0 : 1;
  });
  ASSERT_EQ(r.status, 0);
  const int used = std::stoi(read_text(number));
  std::printf("log_call: %d bytes of stack\n", used);
  EXPECT_LT(used, 2560);
}

TEST(Warn, EachTopicOnce) {
  const ChildResult r = in_child({}, [] {
    warn(Warning::no_blas, "no BLAS in %s (%d)", "/usr/lib", 3);
    warn(Warning::no_blas, "again");
    warn(Warning::gpu_lost, "two\nlines");
    return 0;
  });
  EXPECT_EQ(r.error, "gemmhoist: no BLAS in /usr/lib (3)\ngemmhoist: two?lines\n");
}

}  // namespace
}  // namespace gemmhoist::observe
