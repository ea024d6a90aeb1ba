// Discovery in a process that has no BLAS of its own: first calls by many threads at once, and in a forked
// child.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "fallback/fallback.hpp"

namespace gemmhoist::fallback {
namespace {

TEST(Provider, ForkedChildFindsItsOwn) {
  const pid_t child = fork();
  if (child == 0) {
    float x = 2, c = 1;
    multiply(provider(Spelling::scipy_sgemm_),
             {Transpose::no, Transpose::no, 1, 1, 1, 1, &x, 1, &x, 1, 1, &c, 1});
    _exit(c == 5 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Provider, ThreadsThatAskTogetherGetOneAnswer) {
  for (int i = 0; i < kSpellings; ++i) {
    std::atomic<int> ready{0};
    const Provider* seen[8] = {};
    std::vector<std::thread> threads;
    for (auto& answer : seen) {
      threads.emplace_back([&ready, &answer, i] {
        ++ready;
        while (ready < 8) std::this_thread::yield();
        answer = &provider(static_cast<Spelling>(i));
      });
    }
    for (auto& thread : threads) thread.join();
    for (const Provider* answer : seen) EXPECT_EQ(answer, seen[0]);
    ASSERT_NE(seen[0]->function, nullptr);
  }
}

TEST(Provider, KeepsErrnoAndNamesItsLibrary) {
  errno = 4711;
  const Provider& p = provider(Spelling::cblas_sgemm_64);
  EXPECT_EQ(errno, 4711);
  EXPECT_NE(std::string(p.path), "");
  EXPECT_TRUE(p.arguments_ilp64);
}

TEST(Provider, PlainNamesAre32BitWhereNothingSaysOtherwise) {
  EXPECT_FALSE(provider(Spelling::cblas_sgemm).arguments_ilp64);
  EXPECT_FALSE(provider(Spelling::sgemm).arguments_ilp64);
  EXPECT_FALSE(provider(Spelling::scipy_cblas_sgemm).arguments_ilp64);
}

TEST(Provider, GuardsNest) {
  EXPECT_FALSE(inside_fallback());
  {
    const InsideFallback outer;
    const InsideFallback inner;
    (void)inner;
    (void)outer;
  }
  EXPECT_FALSE(inside_fallback());
}

}  // namespace
}  // namespace gemmhoist::fallback
