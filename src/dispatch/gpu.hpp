// The GPU as the dispatcher sees it: its state, its start, the hand-over of a call, its end.
#pragma once

#include <cstdint>

#include "core/machine_profile.hpp"
#include "decide/decide.hpp"
#include "pipeline/pipeline.hpp"

namespace gemmhoist::dispatch {

// --- state; any thread, never blocks ---

decide::GpuState gpu_state() noexcept;
// Predicted seconds of the calls already handed over and not finished, on the device with the least.
double gpu_queue_seconds() noexcept;
// Until the start that is under way should be done; the whole start where none is.
double gpu_start_remaining_seconds() noexcept;
// What the cost model knows; changes once, when the GPU has come up and measured itself.
const MachineProfile& machine_profile() noexcept;
bool machine_was_measured() noexcept;
// What calls took over what was estimated.
decide::GpuTimeLearner& gpu_times() noexcept;

// What the GPU would have saved on calls that the CPU served while it was cold.
double gpu_earned_seconds() noexcept;
void gpu_add_earned(double seconds) noexcept;

// --- start ---

// Begins the start in the background, if the GPU is cold. Makes a thread; loads nothing on this one.
void start_gpu() noexcept;
// Waits for a start under way. False when the GPU is not up: it is absent, patience is over, or the worker
// cannot get at the dynamic loader because this very thread holds its lock (a constructor of a library being
// loaded).
bool await_gpu(std::int64_t patience_ns) noexcept;

// --- one call ---

struct GpuAnswer {
  pipeline::Outcome outcome = pipeline::Outcome::partial;
  bool tried = false;  // false: nothing was handed over (no device to be had, or others came first); C is the
                       // caller's
};
// Hands `job` to the least busy device and waits. Afterwards the state reflects how it went: a failure is of
// that device alone. `decision` holds what was predicted.
GpuAnswer run_on_gpu(pipeline::Job& job, const decide::Decision& decision) noexcept;

// --- the process' life ---

// The child of a fork has no threads of ours and must not use its parent's context.
void gpu_after_fork() noexcept;

}  // namespace gemmhoist::dispatch
