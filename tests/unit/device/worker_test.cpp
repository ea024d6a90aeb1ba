// The worker: tasks in order, each run or abandoned exactly once, and a close that never waits past its
// deadline.
#include "device/worker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "observe/trace.hpp"
#include "support/simulation.hpp"

namespace gemmhoist::test {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

struct Log {
  std::mutex mutex;
  std::vector<int> run, abandoned;
  Status why;

  std::size_t done() {
    std::lock_guard lock(mutex);
    return run.size() + abandoned.size();
  }
  void await(std::size_t count) {
    while (done() < count) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
};

class Note final : public device::Task {
 public:
  Note(Log& log, int number, std::atomic<bool>* hold = nullptr) : log_(log), number_(number), hold_(hold) {}
  void run(device::Device&) noexcept override {
    entered = true;
    while (hold_ != nullptr && hold_->load()) std::this_thread::sleep_for(std::chrono::microseconds(100));
    std::lock_guard lock(log_.mutex);
    log_.run.push_back(number_);
  }
  void abandon(Status why) noexcept override {
    std::lock_guard lock(log_.mutex);
    log_.abandoned.push_back(number_);
    log_.why = why;
  }

  std::atomic<bool> entered{false};

 private:
  Log& log_;
  int number_;
  std::atomic<bool>* hold_;
};

std::int64_t in_ms(std::int64_t ms) {
  return observe::now_ns() + ms * kMillisecond;
}

TEST(Worker, RunsTasksInOrder) {
  Simulation simulation;
  set_simulation(&simulation);
  Log log;
  std::vector<std::unique_ptr<Note>> notes;
  for (int i = 0; i < 200; ++i) notes.push_back(std::make_unique<Note>(log, i));
  device::Worker* worker = device::start_worker(simulated_factory, 0, *notes[0]);
  ASSERT_NE(worker, nullptr);
  for (int i = 1; i < 200; ++i) EXPECT_TRUE(worker->submit(*notes[static_cast<std::size_t>(i)]));
  log.await(200);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(log.run[static_cast<std::size_t>(i)], i);
  EXPECT_TRUE(worker->close(in_ms(20000), device::AtClose::destroy_device));
  delete worker;
}

TEST(Worker, AbandonsEverythingWhenThereIsNoDevice) {
  Simulation simulation;
  Fault fault;
  fault.fail_at = 1;
  fault.error = StatusCode::unavailable;
  simulation.arm(fault);
  set_simulation(&simulation);
  Log log;
  Note first(log, 0), second(log, 1);
  device::Worker* worker = device::start_worker(simulated_factory, 0, first);
  ASSERT_NE(worker, nullptr);
  const bool taken = worker->submit(second);
  log.await(taken ? 2 : 1);
  EXPECT_TRUE(log.run.empty());
  EXPECT_EQ(log.abandoned.size(), taken ? 2U : 1U);
  EXPECT_EQ(log.why.code(), StatusCode::unavailable);
  EXPECT_TRUE(worker->close(in_ms(20000)));
  EXPECT_FALSE(worker->submit(second)) << "a worker without a device takes nothing";
  delete worker;
}

TEST(Worker, CloseAbandonsTheQueueAndHonoursItsDeadline) {
  Simulation simulation;
  set_simulation(&simulation);
  Log log;
  std::atomic<bool> hold{true};
  Note stuck(log, 0, &hold), queued(log, 1), late(log, 2);
  device::Worker* worker = device::start_worker(simulated_factory, 0, stuck);
  ASSERT_NE(worker, nullptr);
  while (!stuck.entered) std::this_thread::sleep_for(std::chrono::microseconds(100));
  ASSERT_TRUE(worker->submit(queued));
  const std::int64_t begin = observe::now_ns();
  EXPECT_FALSE(worker->close(in_ms(50), device::AtClose::destroy_device));
  EXPECT_LT(observe::now_ns() - begin, 5000 * kMillisecond);
  {
    std::lock_guard lock(log.mutex);
    EXPECT_EQ(log.abandoned, std::vector<int>{1});
  }
  EXPECT_FALSE(worker->submit(late));
  hold = false;
  EXPECT_TRUE(worker->close(in_ms(20000), device::AtClose::destroy_device));
  EXPECT_EQ(log.run, std::vector<int>{0});
  delete worker;
}

TEST(Worker, ManyThreadsSubmit) {
  Simulation simulation;
  set_simulation(&simulation);
  Log log;
  Note first(log, -1);
  device::Worker* worker = device::start_worker(simulated_factory, 0, first);
  ASSERT_NE(worker, nullptr);
  constexpr int kThreads = 4, kEach = 100;
  std::vector<std::vector<std::unique_ptr<Note>>> notes(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        notes[static_cast<std::size_t>(t)].push_back(std::make_unique<Note>(log, t * kEach + i));
        EXPECT_TRUE(worker->submit(*notes[static_cast<std::size_t>(t)].back()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  log.await(kThreads * kEach + 1);
  EXPECT_TRUE(worker->close(in_ms(20000), device::AtClose::destroy_device));
  // Of each thread in its order.
  int last[kThreads] = {-1, -1, -1, -1};
  for (const int number : log.run) {
    if (number < 0) continue;
    EXPECT_GT(number % kEach, last[number / kEach]);
    last[number / kEach] = number % kEach;
  }
  delete worker;
}

}  // namespace
}  // namespace gemmhoist::test
