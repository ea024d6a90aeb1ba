#include "pipeline/copy_pool.hpp"

#include <sched.h>

#include <algorithm>

#include "os/os.hpp"
#include "pipeline/host_copy.hpp"
#include "pipeline/scheduling.hpp"

namespace gemmhoist::pipeline {
namespace {

// A copy of lines and, when tracing, a span: little stack.
constexpr std::size_t kStackBytes = 256 << 10;
// While a job runs, pieces come as slots do: every 80 us where the link moves 4 MiB chunks, and one wake of
// twelve sleeping threads takes until 200 us later for the last of them (measured on 16 CPUs of a virtual
// machine; the first is there after 20 to 60 us). A host of few CPUs needs them for other things.
constexpr std::int64_t kSpinNs = 200'000;
constexpr std::int64_t kSpinFewCpusNs = 50'000;

}  // namespace

int CopyPool::start(CopyQueue& queue, int threads, bool few_cpus) noexcept {
  queue_ = &queue;
  spin_ns_ = few_cpus ? kSpinFewCpusNs : kSpinNs;
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
  prefer_short_slice();
  keep_apart(self.index);
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

// A thread whose sleep ends finds the job active and spins until the first piece is there.
void CopyPool::rouse(int threads) noexcept {
  if (threads_ == 0 || !queue_->has_sleepers()) return;
  set_active(true);
  queue_->wake(std::min(threads, threads_));
}

// True when there may be work after all.
bool CopyPool::spin() noexcept {
  if (!active_.load(std::memory_order_relaxed)) return false;
  const std::int64_t deadline = os::monotonic_ns() + spin_ns_;
  do {
    for (int i = 0; i < 32; ++i) pause();
    if (queue_->has_work()) return true;
    sched_yield();  // to whom has work: returns at once where nobody else wants this CPU
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
