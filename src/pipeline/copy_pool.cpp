#include "pipeline/copy_pool.hpp"

#include <algorithm>

#include "os/os.hpp"
#include "pipeline/host_copy.hpp"

namespace gemmhoist::pipeline {
namespace {

// A copy of lines and, when tracing, a span: little stack.
constexpr std::size_t kStackBytes = 256 << 10;
// Pieces follow each other within some 10 us while a job runs; a futex sleep and its wake cost about as much
// as this spin.
constexpr std::int64_t kSpinNs = 50'000;

}  // namespace

int CopyPool::start(CopyQueue& queue, int threads) noexcept {
  queue_ = &queue;
  threads = std::min(threads, kMostThreads);
  while (threads_ < threads) {
    starts_[threads_] = {this, threads_};
    alive_.fetch_add(1);
    if (!os::start_thread(
            "gemmhoist-copy", kStackBytes, [](void* start) { body(start); }, &starts_[threads_])) {
      alive_.fetch_sub(1);
      break;
    }
    ++threads_;
  }
  return threads_;
}

void CopyPool::body(void* start) noexcept {
  const auto& self = *static_cast<Start*>(start);
  CopyPool* pool = self.pool;
  pool->serve(self.index);
  pool->alive_.fetch_sub(1, std::memory_order_release);  // the last touch of the pool
}

void CopyPool::serve(int index) noexcept {
  while (!closing_.load(std::memory_order_acquire)) {
    if (queue_->work(index) || spin()) continue;
    const std::uint32_t ticket = queue_->sleep_ticket();
    if (queue_->has_work() || closing_.load(std::memory_order_seq_cst)) {
      queue_->cancel_sleep();
    } else {
      queue_->sleep(ticket);
    }
  }
}

// True when there may be work after all.
bool CopyPool::spin() noexcept {
  if (!active_.load(std::memory_order_relaxed)) return false;
  const std::int64_t deadline = os::monotonic_ns() + kSpinNs;
  do {
    for (int i = 0; i < 32; ++i) pause();
    if (queue_->has_work()) return true;
  } while (active_.load(std::memory_order_relaxed) && os::monotonic_ns() < deadline);
  return false;
}

void CopyPool::stop() noexcept {
  closing_.store(true, std::memory_order_seq_cst);
  while (alive_.load(std::memory_order_acquire) != 0) {
    queue_->wake_all();
    // No word to wait on: it would be the last touch of a thread on memory that goes away.
    static const std::uint32_t nobody = 0;
    os::futex_wait(&nobody, 0, os::monotonic_ns() + 100'000);
  }
}

}  // namespace gemmhoist::pipeline
