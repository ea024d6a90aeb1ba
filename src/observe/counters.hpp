// Counters: one table, sharded over cache lines so that counting costs a caller some nanoseconds.
#pragma once

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
  range_tiles_fp32,  // tiles of a faster mode that had to run in fp32
  count_             // number of counters
};

const char* name(Counter counter) noexcept;
void add(Counter counter, std::uint64_t amount = 1) noexcept;
std::uint64_t total(Counter counter) noexcept;
// In a forked child: it counts its own, and traces its own (reset_trace_after_fork).
void reset_after_fork() noexcept;
void reset_counters() noexcept;  // the first half of it

}  // namespace gemmhoist::observe
