// The machine profile before the GPU has been measured, and its file (GEMMHOIST_PROFILE).
#pragma once

#include "core/gemm_call.hpp"
#include "core/machine_profile.hpp"
#include "decide/decide.hpp"

namespace gemmhoist::dispatch {

// What is assumed until the GPU has come up: the saved profile where GEMMHOIST_PROFILE names a readable one
// of this machine, cautious defaults otherwise. The file is read once, at the first call that asks.
const MachineProfile& initial_profile() noexcept;

// CPU rates learnt by this process, begun from the saved ones.
const decide::CpuRateLearner& cpu_rates() noexcept;
void learn_cpu_rate(const GemmCall& call, double seconds) noexcept;
// Whether a product that the GPU would serve goes to the CPU, to see how long it takes there; then what it
// took.
bool look_at_cpu_again(const GemmCall& call, double cpu_s, double gpu_s) noexcept;
void learn_looking_again(const GemmCall& call, double expected_s, double seconds) noexcept;
// In this process, not by its parent: a process that has learnt nothing has nothing to save.
bool cpu_rate_was_learnt() noexcept;

// Writes `measured` and the learnt CPU rates where GEMMHOIST_PROFILE says; nothing where it is not set.
void save_profile(const MachineProfile& measured) noexcept;

// A thread that was reading the file in the parent does not exist in the child: the child reads it itself.
void profile_after_fork() noexcept;

}  // namespace gemmhoist::dispatch
