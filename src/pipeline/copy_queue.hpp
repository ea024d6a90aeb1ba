// Copy queue: the work of the copy threads and of the waiting caller, memory to memory, never the device.
//
// The worker publishes tasks in the order in which it wants them done; each is a rectangle cut into pieces
// that threads claim one by one. The ring holds the tasks themselves: a claim is one compare-and-swap, and a
// task's place is used again only when all of its pieces are done.
//
// Taking a call back. A thread that has claimed a piece enters its job (Entry) before it touches the caller's
// memory, and then looks whether the job was cancelled. Who cancels sets the flag, and then waits until
// nobody is inside. Both orders are sequentially consistent, so one of the two sees the other. A piece of a
// cancelled job is done as soon as it is claimed: it moves nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "pipeline/cut.hpp"
#include "pipeline/ledger.hpp"

namespace gemmhoist::pipeline {

// What cancelling needs to know of a job.
struct Gate {
  std::atomic<bool> closed{false};
  std::atomic<std::uint32_t> inside{0};

  // After this nobody enters. Returns at once; see wait_until_empty.
  void close() noexcept { closed.store(true, std::memory_order_seq_cst); }
  bool is_closed() const noexcept { return closed.load(std::memory_order_seq_cst); }
  // Waits for copies under way, each some microseconds.
  void wait_until_empty() const noexcept;
};

class Entry {
 public:
  explicit Entry(Gate& gate) noexcept : gate_(gate) {
    gate_.inside.fetch_add(1, std::memory_order_seq_cst);
    allowed_ = !gate_.is_closed();
  }
  ~Entry() { gate_.inside.fetch_sub(1, std::memory_order_release); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  bool allowed() const noexcept { return allowed_; }

 private:
  Gate& gate_;
  bool allowed_;
};

enum class CopyKind : std::uint8_t {
  fill,        // caller's operand -> pinned slot
  write_back,  // pinned slot -> C, beta applied, ledger marked
  touch,       // first touch of our own memory, to place its pages
};

struct CopyTask {
  CopyKind kind = CopyKind::fill;
  Gate* gate = nullptr;  // null for touch
  const float* source = nullptr;
  std::int64_t source_pitch = 0;  // elements, as all lengths here
  float* destination = nullptr;
  std::int64_t destination_pitch = 0;
  Grid pieces;
  float beta = 0;         // write_back
  Tile* tiles = nullptr;  // write_back: one a piece
};

class CopyQueue {
 public:
  static constexpr std::uint32_t kTasks = 256;
  static constexpr std::int64_t kMostPieces = 0x7fff;  // of one task

  using Ticket = std::uint32_t;

  // --- the worker's side ---
  // False when the task's place in the ring is still in use: try again later.
  bool publish(const CopyTask& task, Ticket& ticket) noexcept;
  // For tickets of the last kTasks publications (older ones are complete).
  bool complete(Ticket ticket) const noexcept;
  // Number of tasks completed so far; await_completion sleeps while it is `seen`, until the deadline.
  std::uint32_t completions() const noexcept { return completions_.load(std::memory_order_seq_cst); }
  void await_completion(std::uint32_t seen, std::int64_t deadline_ns) noexcept;
  // Returns when every task is complete, working on them meanwhile.
  void finish_all() noexcept;

  // --- everybody ---
  // Claims a piece of the oldest task that has any, and does it. False when there is none. `thread`: index of
  // the copy thread, for the trace; kCaller and kWorker stand for the others.
  static constexpr int kCaller = -1, kWorker = -2;
  bool work(int thread) noexcept;
  bool has_work() noexcept;

  // --- the copy threads' sleep: until something is published or wake_all is called ---
  std::uint32_t sleep_ticket() noexcept;  // take one, look for work once more, then sleep or cancel
  void sleep(std::uint32_t ticket) noexcept;
  void cancel_sleep() noexcept;
  void wake_all() noexcept { wake(1 << 20); }
  void wake(int threads) noexcept;
  bool has_sleepers() const noexcept { return sleepers_.load(std::memory_order_seq_cst) != 0; }

 private:
  struct alignas(64) Place {
    std::atomic<std::uint64_t> claim{~std::uint64_t{0} << 32};  // ticket << 32 | next piece << 16 | pieces
    std::atomic<std::uint32_t> done{0};
    CopyTask task;
  };

  bool claim(Place*& place, std::int64_t& piece) noexcept;

  Place places_[kTasks];
  alignas(64) std::atomic<std::uint32_t> published_{0};
  alignas(64) std::atomic<std::uint32_t> head_{0};  // no task before it has a piece to claim
  alignas(64) std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint32_t> wake_word_{0};
  alignas(64) std::atomic<std::uint32_t> completions_{0};
  std::atomic<bool> worker_sleeps_{false};
};

}  // namespace gemmhoist::pipeline
