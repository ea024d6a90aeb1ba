// Dispatch: one call, as a short list of passes, and the state of the GPU.
#pragma once

#include <cstdint>

#include "core/gemm_call.hpp"
#include "fallback/fallback.hpp"

namespace gemmhoist::dispatch {

// What the CPU's part of a call owes the model: nothing, or its duration.
struct CpuTicket {
  bool timed = false;  // report the call through cpu_call_done
  std::int64_t begin_ns = 0;
  double gpu_s = 0, cpu_s = 0;  // predictions, for what the GPU would have saved; 0: none made
  const char* reason = "";
};

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
