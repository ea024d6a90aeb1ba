// Copy pool: persistent threads that work on one copy queue. They use no CPU when there is no job.
#pragma once

#include <atomic>
#include <cstdint>

#include "pipeline/copy_queue.hpp"

namespace gemmhoist::pipeline {

// Threads for a host of `usable_cpus` when nobody asks for a number: two CPUs are left, one for the worker
// and one for the caller, who copies too. Twelve copying threads saturate the memory of the reference machine
// (58 GB/s in and out together; 8 threads reach 53 one way); more would only take the host's CPUs.
constexpr int default_copy_threads(int usable_cpus) noexcept {
  constexpr int kMost = 12;
  const int spare = usable_cpus - 2;
  return spare < 0 ? 0 : spare < kMost ? spare : kMost;
}

class CopyPool {
 public:
  static constexpr int kMostThreads = 64;

  // Starts up to `threads`; returns how many there are (none can be had: none).
  int start(CopyQueue& queue, int threads, bool few_cpus) noexcept;
  // While a job is active, a thread without work spins a while before it sleeps.
  void set_active(bool active) noexcept { active_.store(active, std::memory_order_relaxed); }
  int size() const noexcept { return threads_; }
  // Any thread: a job will be active soon. Up to `threads` sleeping threads wake while it is on its way.
  void rouse(int threads) noexcept;
  // Waits until all threads have ended.
  void stop() noexcept;

 private:
  struct Start {
    CopyPool* pool;
    int index;
  };
  static void body(void* start) noexcept;
  void serve(int index) noexcept;
  bool spin() noexcept;

  CopyQueue* queue_ = nullptr;
  int threads_ = 0;
  std::int64_t spin_ns_ = 0;
  Start starts_[kMostThreads] = {};
  std::atomic<int> alive_{0};
  std::atomic<bool> active_{false};
  std::atomic<bool> closing_{false};
};

}  // namespace gemmhoist::pipeline
