// Dispatch: one call, as a short list of passes, and the state of the GPU.
#pragma once

#include <cstdint>

#include "core/gemm_call.hpp"
#include "fallback/fallback.hpp"

namespace gemmhoist::dispatch {

// Serves a legal product. True: C is complete, by whichever route the pass list took. False: the call is for
// the CPU, and nothing was done: the caller forwards its own arguments to the provider (and, when timing asks
// for it, reports back through cpu_call_done).
struct CpuTicket {
  bool timed = false;  // report the duration of the CPU call
  std::int64_t begin_ns = 0;
  double gpu_s = 0, cpu_s = 0;  // predictions, for what the GPU would have saved
  const char* reason = "";
};
bool serve(fallback::Spelling spelling, const fallback::Provider& provider, const GemmCall& call,
           CpuTicket& ticket) noexcept;
void cpu_call_done(fallback::Spelling spelling, const GemmCall& call, const CpuTicket& ticket) noexcept;

// Load and fork hooks, called by abi.
void on_load() noexcept;
void on_fork_child() noexcept;

}  // namespace gemmhoist::dispatch
