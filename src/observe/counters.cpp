#include "observe/counters.hpp"

#include <atomic>
#include <cstddef>

#include "observe/trace.hpp"

namespace gemmhoist::observe {
namespace {

constexpr std::size_t kCounters = static_cast<std::size_t>(Counter::count_);

// 128 bytes: CPUs fetch cache lines in pairs, so that neighbours of 64 would still travel together.
struct alignas(128) Shard {
  std::atomic<std::uint64_t> values[kCounters];
};
// Many more than threads: two that share a shard pass its line back and forth at 50 to 100 ns an addition.
// Among 32 threads, 64 shards have eight such pairs (32 threads of 16 x 16 x 16 ran at 0.63 of plain
// OpenBLAS), 1024 half a pair. Pages that nobody counts in are never made.
constexpr int kShardBits = 10;
constinit Shard shards[1 << kShardBits] = {};

constexpr const char* kNames[] = {
    "calls_cblas", "calls_fortran", "calls_cblas64", "calls_fortran64",  "calls_illegal", "calls_trivial",
    "calls_cpu",   "calls_gpu",     "calls_rescued", "tiles_gpu",        "tiles_rescued", "bytes_h2d",
    "bytes_d2h",   "gpu_starts",    "gpu_failures",  "range_tiles_fp32",
};
static_assert(sizeof kNames / sizeof kNames[0] == kCounters);

// A thread keeps one shard for its life: the hash of its thread pointer, which is one register. (The number
// of the CPU costs ten times as much, a thread_local of a preloaded library a call into the loader.) Thread
// control blocks are pages apart, so the low bits say nothing; the multiplier is 2^64 over the golden ratio.
Shard& own_shard() noexcept {
  const auto thread = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  return shards[((thread >> 6) * 0x9E3779B97F4A7C15u) >> (64 - kShardBits)];
}

}  // namespace

const char* name(Counter counter) noexcept {
  return kNames[static_cast<std::size_t>(counter)];
}

// Threads may share a shard, hence an atomic addition; in one's own cache line it costs about 5 ns.
void add(Counter counter, std::uint64_t amount) noexcept {
  own_shard().values[static_cast<std::size_t>(counter)].fetch_add(amount, std::memory_order_relaxed);
}

std::uint64_t total(Counter counter) noexcept {
  std::uint64_t sum = 0;
  for (const Shard& shard : shards)
    sum += shard.values[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
  return sum;
}

void reset_counters() noexcept {
  for (Shard& shard : shards) {
    for (auto& value : shard.values) {
      // Writing a zero over a zero would make the page.
      if (value.load(std::memory_order_relaxed) != 0) value.store(0, std::memory_order_relaxed);
    }
  }
}

void reset_after_fork() noexcept {
  reset_counters();
  reset_trace_after_fork();
}

}  // namespace gemmhoist::observe
