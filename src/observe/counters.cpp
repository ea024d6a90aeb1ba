#include "observe/counters.hpp"

#include <atomic>
#include <cstddef>

#include "observe/trace.hpp"

namespace gemmhoist::observe {
namespace {

constexpr std::size_t kCounters = static_cast<std::size_t>(Counter::count_);

// Where threads count whose shard is another's. As many as make two of them meet seldom.
struct alignas(128) Shared {
  std::atomic<std::uint64_t> values[kCounters];
};
constexpr std::size_t kShared = 64;
constinit Shared shared[kShared] = {};

constexpr const char* kNames[] = {
    "calls_cblas", "calls_fortran", "calls_cblas64", "calls_fortran64", "calls_illegal",    "calls_trivial",
    "calls_cpu",   "calls_gpu",     "calls_rescued", "tiles_gpu",       "tiles_rescued",    "bytes_h2d",
    "bytes_d2h",   "gpu_starts",    "gpu_failures",  "range_tiles",     "range_tiles_fp32",
};
static_assert(sizeof kNames / sizeof kNames[0] == kCounters);

// f(value) for each that makes up `counter`.
template <typename Function>
void for_each_value(std::size_t counter, Function&& f) noexcept {
  for (int page = 0; page < detail::kShardPages; ++page) {
    if (!detail::page_is_used[page].load(std::memory_order_relaxed)) continue;
    for (int i = 0; i < detail::kShardsPerPage; ++i)
      f(detail::shards[page * detail::kShardsPerPage + i].values[counter]);
  }
  for (Shared& shard : shared) f(shard.values[counter]);
}

}  // namespace

constinit detail::Shard detail::shards[1 << kShardBits] = {};
constinit std::atomic<bool> detail::page_is_used[kShardPages] = {};

const char* name(Counter counter) noexcept {
  return kNames[static_cast<std::size_t>(counter)];
}

void detail::add_as_stranger(std::uintptr_t thread, Counter counter, std::uint64_t amount) noexcept {
  Shard& shard = shard_of(thread);
  std::uintptr_t nobody = 0;
  if (shard.owner.compare_exchange_strong(nobody, thread, std::memory_order_relaxed)) {
    page_is_used[(&shard - shards) / kShardsPerPage].store(true, std::memory_order_relaxed);
    return add(counter, amount);
  }
  auto& value = shared[(thread >> 12) % kShared].values[static_cast<std::size_t>(counter)];
  value.fetch_add(amount, std::memory_order_relaxed);
}

std::uint64_t total(Counter counter) noexcept {
  std::uint64_t sum = 0;
  for_each_value(static_cast<std::size_t>(counter),
                 [&](const auto& value) { sum += value.load(std::memory_order_relaxed); });
  return sum;
}

void reset_counters() noexcept {
  for (std::size_t counter = 0; counter < kCounters; ++counter) {
    for_each_value(counter, [](auto& value) {
      // Writing a zero over a zero would make the page.
      if (value.load(std::memory_order_relaxed) != 0) value.store(0, std::memory_order_relaxed);
    });
  }
}

void reset_after_fork() noexcept {
  reset_counters();
  reset_trace_after_fork();
}

}  // namespace gemmhoist::observe
