// Counters: one table, with a shard a thread, so that counting costs a caller a nanosecond.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gemmhoist::observe {

enum class Counter : std::uint8_t {
  calls_cblas,  // entries by spelling family
  calls_fortran,
  calls_cblas64,
  calls_fortran64,
  calls_illegal,
  calls_trivial,
  calls_cpu,      // products served by the fallback by decision
  calls_gpu,      // products finished on the GPU
  calls_rescued,  // begun on the GPU and finished, wholly or in part, by the fallback
  tiles_gpu,      // C tiles written from the GPU
  tiles_rescued,
  bytes_h2d,
  bytes_d2h,
  gpu_starts,
  gpu_failures,
  range_tiles,       // tiles of 128 x 128, by slices of k, of products in bf16x6
  range_tiles_fp32,  // those of them that had to run in fp32
  count_             // number of counters
};

namespace detail {

// What one thread has counted. A shard belongs to the first thread that counts in it, and to no other that
// lives at the same time, so that an addition is no locked one: that would wait for the stores of the product
// before, and two of them are in the way of each. A signal handler that multiplies amid an addition may go
// uncounted.
//
// 128 bytes: CPUs fetch cache lines in pairs, so that neighbours of 64 would still travel together. The owner
// first: with the counters of calls it makes one line of 64.
struct alignas(128) Shard {
  std::atomic<std::uintptr_t> owner;
  std::atomic<std::uint64_t> values[static_cast<std::size_t>(Counter::count_)];
};

// Many more than threads: of 32 threads half a pair finds one shard for two. Pages that nobody counts in are
// never made.
inline constexpr int kShardBits = 10;
extern Shard shards[1 << kShardBits];

// Of each page of shards, whether somebody counts there. A forked child sets its counters back: it would have
// all 64 pages mapped for that.
inline constexpr int kShardsPerPage = 4096 / sizeof(Shard);
inline constexpr int kShardPages = (1 << kShardBits) / kShardsPerPage;
extern std::atomic<bool> page_is_used[kShardPages];

// A thread keeps one shard for its life: the hash of its thread pointer, which is one register. (The number
// of the CPU costs ten times as much, a thread_local of a preloaded library a call into the loader.) Thread
// control blocks are pages apart, so the low bits say nothing; the multiplier is 2^64 over the golden ratio.
// A new thread where an ended one was goes on with its shard.
inline Shard& shard_of(std::uintptr_t thread) noexcept {
  return shards[((thread >> 6) * 0x9E3779B97F4A7C15u) >> (64 - kShardBits)];
}

// The first addition of a thread, and all of those whose shard is another's.
void add_as_stranger(std::uintptr_t thread, Counter counter, std::uint64_t amount) noexcept;

}  // namespace detail

const char* name(Counter counter) noexcept;

namespace detail {
inline void add_as_owner(Shard& shard, Counter counter, std::uint64_t amount) noexcept {
  auto& value = shard.values[static_cast<std::size_t>(counter)];
  value.store(value.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}
}  // namespace detail

inline void add(Counter counter, std::uint64_t amount = 1) noexcept {
  const auto thread = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  detail::Shard& shard = detail::shard_of(thread);
  if (shard.owner.load(std::memory_order_relaxed) != thread) [[unlikely]]
    return detail::add_as_stranger(thread, counter, amount);
  detail::add_as_owner(shard, counter, amount);
}

// One of each, for the thread's shard is looked up once. False: nothing was added, for the shard is not the
// thread's own.
inline bool add_both_as_owner(Counter first, Counter second) noexcept {
  const auto thread = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  detail::Shard& shard = detail::shard_of(thread);
  if (shard.owner.load(std::memory_order_relaxed) != thread) [[unlikely]]
    return false;
  detail::add_as_owner(shard, first, 1);
  detail::add_as_owner(shard, second, 1);
  return true;
}

std::uint64_t total(Counter counter) noexcept;
// In a forked child: it counts its own, and traces its own (reset_trace_after_fork).
void reset_after_fork() noexcept;
void reset_counters() noexcept;  // the first half of it

}  // namespace gemmhoist::observe
