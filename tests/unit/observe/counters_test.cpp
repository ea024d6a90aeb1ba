#include "observe/counters.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace gemmhoist::observe {
namespace {

TEST(Counters, NamesDiffer) {
  std::set<std::string> names;
  for (int i = 0; i < static_cast<int>(Counter::count_); ++i)
    EXPECT_TRUE(names.insert(name(static_cast<Counter>(i))).second);
  EXPECT_STREQ(name(Counter::calls_cblas), "calls_cblas");
  EXPECT_STREQ(name(Counter::calls_gpu), "calls_gpu");
  EXPECT_STREQ(name(Counter::bytes_h2d), "bytes_h2d");
  EXPECT_STREQ(name(Counter::range_tiles_fp32), "range_tiles_fp32");
}

TEST(Counters, NoAdditionIsLostAndNoneStrays) {
  reset_counters();
  constexpr int kThreads = 40, kTimes = 20000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < kTimes; ++i) {
        add(Counter::calls_cpu);
        add(Counter::bytes_d2h, 3);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(total(Counter::calls_cpu), std::uint64_t{kThreads} * kTimes);
  EXPECT_EQ(total(Counter::bytes_d2h), std::uint64_t{kThreads} * kTimes * 3);
  EXPECT_EQ(total(Counter::bytes_h2d), 0u);
  EXPECT_EQ(total(Counter::calls_gpu), 0u);
  reset_counters();
  EXPECT_EQ(total(Counter::calls_cpu), 0u);
}

// More threads at once than have shards of their own: 400 of 1024, of which some 70 find theirs taken. And
// one after another, which find the shards of those that have ended.
TEST(Counters, ThreadsWithoutAShardOfTheirOwnCountToo) {
  reset_counters();
  constexpr int kThreads = 400, kTimes = 500;
  std::barrier together(kThreads);
  std::atomic<std::uint64_t> strangers{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        add(Counter::calls_gpu);
        together.arrive_and_wait();
        for (int i = 0; i < kTimes; ++i) {
          if (add_both_as_owner(Counter::calls_cblas, Counter::calls_cpu)) continue;
          ++strangers;
          add(Counter::calls_cblas);
          add(Counter::calls_cpu);
          add(Counter::tiles_rescued);
        }
      });
  }
  EXPECT_EQ(total(Counter::calls_gpu), std::uint64_t{kThreads});
  EXPECT_EQ(total(Counter::calls_cblas), std::uint64_t{kThreads} * kTimes);
  EXPECT_EQ(total(Counter::calls_cpu), std::uint64_t{kThreads} * kTimes);
  EXPECT_GT(strangers, 0U);
  // None of them counted where the owner of a shard may be adding without a lock.
  EXPECT_EQ(total(Counter::tiles_rescued), strangers);
  for (const detail::Shard& shard : detail::shards)
    EXPECT_EQ(shard.values[static_cast<std::size_t>(Counter::tiles_rescued)], 0U);
  EXPECT_LT(strangers, std::uint64_t{kThreads} * kTimes / 2);
  for (int t = 0; t < 100; ++t) std::thread([] { add(Counter::calls_gpu); }).join();
  EXPECT_EQ(total(Counter::calls_gpu), std::uint64_t{kThreads} + 100);
  reset_counters();
}

// Of a process that counts on one thread, as most do: the child looks at the pages of that thread and of the
// strangers, not at all that there might be.
TEST(Counters, AForkedChildMapsNoPagesToSetThemBack) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer maps shadows of its own";
#endif
  const pid_t child = fork();
  if (child == 0) {
    // As if nobody had counted before, whatever other tests did.
    constexpr std::uintptr_t kPage = 4096;
    const auto first = (reinterpret_cast<std::uintptr_t>(detail::shards) + kPage - 1) / kPage * kPage;
    const auto last = reinterpret_cast<std::uintptr_t>(std::end(detail::shards)) / kPage * kPage;
    if (madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED) != 0) _exit(255);
    for (auto& used : detail::page_is_used) used.store(false);
    for (detail::Shard* shard : {std::begin(detail::shards), std::end(detail::shards) - 1}) shard->owner = 0;
    add(Counter::calls_cpu, 7);
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    if (total(Counter::calls_cpu) != 7) _exit(254);
    reset_counters();
    getrusage(RUSAGE_SELF, &after);
    if (total(Counter::calls_cpu) != 0) _exit(253);
    _exit(static_cast<int>(std::min<long>(after.ru_minflt - before.ru_minflt, 250)));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_LT(WEXITSTATUS(status), 16);
}

// Prints the cost, and fails only where a lock, a system call or a shared line has crept in: the least of
// many short runs is robust on a loaded machine.
TEST(Counters, AddingIsCheap) {
  constexpr int kTimes = 100000;
  double least = 1e9;
  for (int run = 0; run < 30; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kTimes; ++i) add(Counter::tiles_gpu);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    least = std::min(least, took.count() / kTimes);
  }
  std::printf("an uncontended add: %.2f ns\n", least);
  RecordProperty("nanoseconds", std::to_string(least));
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(least, 20);
#endif
}

}  // namespace
}  // namespace gemmhoist::observe
