// Pipeline: one product over one device: stage in, prepare, compute, write back, with a ledger of what is
// home.
#pragma once

#include <cstdint>

#include "core/gemm_call.hpp"
#include "core/machine_profile.hpp"
#include "core/status.hpp"
#include "device/worker.hpp"
#include "pipeline/ledger.hpp"
#include "plan/plan.hpp"

namespace gemmhoist::pipeline {

// Figures of a finished call.
struct CallTimes {
  double submit_s = 0;  // the worker's own work until everything is queued
  double kernel_s = 0;  // device time of the arithmetic, when asked for
  double total_s = 0;
};

// Tiles of 128 x 128 that a faster precision left to fp32, and how many there were: summed over slices of k.
struct Leftover {
  std::int64_t tiles = 0, of = 0;  // both 0 where none can be
};

// One call on its way through a device. Reference-counted, from a fixed pool: taking one allocates nothing
// and needs little stack. The caller holds one reference, the worker another; whichever lets go last returns
// it.
class Job;

// Everything that a device's calls share: pinned arena, copy threads, device arena. Made on the worker at
// start.
class Engine;

// --- the caller's side (any thread, 16 KiB stacks included) ---

// Takes a job for `call`; null when all are in use.
Job* take_job(const GemmCall& call, Precision precision) noexcept;

enum class Outcome : std::uint8_t {
  done,     // C is complete
  partial,  // some tiles (perhaps none) are home; regions_left() names the others, and nobody writes them any
            // more
};

// Waits for the job, copying pieces meanwhile like one of the copy threads, until it is finished or the
// deadline passes (observe::now_ns clock; then the job is cancelled, and this returns as soon as no thread of
// ours is touching the caller's memory: memory copies only, never the device). Thread cancellation is
// disabled inside.
Outcome wait(Job& job, std::int64_t deadline_ns) noexcept;

Status status(const Job& job) noexcept;
CallTimes times(const Job& job) noexcept;
Leftover leftover(const Job& job) noexcept;
const char* kernel_name(const Job& job) noexcept;
std::int64_t tiles_written(const Job& job) noexcept;

// After partial: calls `finish(region, context)` for a set of disjoint rectangles that make up what is
// missing.
void for_each_region_left(const Job& job, void (*finish)(const Region&, void*), void* context) noexcept;

void let_go(Job& job) noexcept;

// The job as a task of a worker whose engine is `engine`, with the worker's own reference taken. Once a job.
// Where submit() refuses the task, call its abandon(), which gives that reference back.
device::Task& as_task(Job& job, Engine& engine) noexcept;

// --- the worker's side ---

struct EngineOptions {
  std::int32_t host_threads = 0;  // copy threads; the caller of each job copies too
  std::int64_t pinned_bytes = 0;
  std::int64_t device_bytes = 0;          // 0: as much as is free, less a reserve
  Precision precision = Precision::fp32;  // of the calls to come: measured beside fp32
};

// Makes copy threads (all signals blocked, little stack) and the pinned arena (huge pages, MADV_DONTFORK).
Status make_engine(device::Device& device, const EngineOptions& options, Engine*& engine) noexcept;

// Measures link, copy and kernel rates briefly (about 10 ms) and fills the measured part of `profile`.
Status measure(Engine& engine, device::Device& device, MachineProfile& profile) noexcept;
void set_profile(Engine& engine, const MachineProfile& profile) noexcept;

// Lets the copy threads end and gives the memory back; device may be null when it is lost.
void close_engine(Engine* engine, device::Device* device) noexcept;

}  // namespace gemmhoist::pipeline
