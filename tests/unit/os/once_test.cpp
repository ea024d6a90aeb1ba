#include "os/once.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace gemmhoist::os {
namespace {

TEST(Once, ThreadsThatMeetDoItOnceAndSeeWhatWasDone) {
  for (int round = 0; round < 50; ++round) {
    Once once;
    int plain = 0;  // no atomic: a thread that did not wait would be a race
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        once.run([&] { ++plain; });
        if (plain != 1 || !once.done()) wrong.fetch_add(1);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(plain, 1);
    EXPECT_EQ(wrong.load(), 0);
  }
}

TEST(Once, IsDoneAgainOnceForgotten) {
  Once once;
  int times = 0;
  const auto count = [&] { ++times; };
  once.run(count);
  once.run(count);
  EXPECT_EQ(times, 1);
  once.forget();
  EXPECT_FALSE(once.done());
  once.run(count);
  EXPECT_EQ(times, 2);
}

// A child forked while a thread of its parent is at it has nobody to wait for.
TEST(Once, ChildForkedInTheMiddleDoesItItself) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "TSan does not follow a fork beside threads";
#endif
  static Once once;
  static std::atomic<bool> begun{false}, go{false};
  std::thread slow([] {
    once.run([] {
      begun = true;
      while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  });
  while (!begun) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    bool did = false;
    once.run([&] { did = true; });
    _exit(did && once.done() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  go = true;
  slow.join();
  EXPECT_TRUE(once.done());
}

}  // namespace
}  // namespace gemmhoist::os
