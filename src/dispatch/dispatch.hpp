// Dispatch: one call, as a short list of passes, and the state of the GPU.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/checked.hpp"
#include "core/gemm_call.hpp"
#include "fallback/fallback.hpp"

namespace gemmhoist::dispatch {

// What the CPU's part of a call owes the model: nothing, or its duration.
struct CpuTicket {
  bool timed = false;         // report the call through cpu_call_done
  bool looked_again = false;  // the GPU would have done: only to learn of the CPU
  std::int64_t begin_ns = 0;
  double gpu_s = 0, cpu_s = 0;  // predictions, for what the GPU would have saved; 0: none made
  const char* reason = "";
};

// Products of fewer multiplications go to the CPU, whatever is known of it or of a GPU.
inline constexpr std::int64_t kSmallestVolume = 2'000'000;

// In integers: the host may trap on an inexact floating-point result, and this runs in its environment.
inline bool is_too_small(std::int64_t m, std::int64_t n, std::int64_t k) noexcept {
  std::int64_t area = 0, volume = 0;
  return checked_multiply(m, n, area) && checked_multiply(area, k, volume) && volume < kSmallestVolume;
}

// Whether such products are nobody's business but the provider's: no route to the GPU by name, no log of
// calls. serve() finds that out at a small product; from then on an entry may count them (calls_cpu) and send
// them there without asking.
enum class SmallProducts : std::uint8_t { not_known, unexamined, examined };
namespace detail {
extern std::atomic<SmallProducts> small_products;
}
inline bool small_products_go_unexamined() noexcept {
  return detail::small_products.load(std::memory_order_relaxed) == SmallProducts::unexamined;
}

// Serves a legal product. True: C is complete, by whichever route the passes took. False: the call is for the
// CPU and nothing was done: the caller forwards its own arguments to the provider and, if the ticket says so,
// reports the call done. Any thread; blocks while the GPU works; needs 4 KiB of stack; errno is kept.
bool serve(fallback::Spelling spelling, const fallback::Provider& provider, const GemmCall& call,
           CpuTicket& ticket) noexcept;
void cpu_call_done(fallback::Spelling spelling, const GemmCall& call, const CpuTicket& ticket) noexcept;

// The calling thread's mode, as gemmhoist_set_thread_mode has it (GEMMHOIST_MODE_*); false: no such mode.
bool set_thread_mode(int mode) noexcept;
const char* gpu_state_name() noexcept;

// Load and fork hooks, called by abi. on_load makes no thread and opens nothing.
void on_load() noexcept;
void on_fork_child() noexcept;
// End of the process (or of the library's life in it): summary, trace, profile.
void on_unload() noexcept;

}  // namespace gemmhoist::dispatch
