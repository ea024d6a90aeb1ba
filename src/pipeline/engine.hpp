// Engine: what a device's calls share, and the frame of one call: plan, memory, execution, aftermath. All on
// the worker's thread but for the copy queue.
#pragma once

#include <cstdint>

#include "pipeline/copy_pool.hpp"
#include "pipeline/copy_queue.hpp"
#include "pipeline/device_arena.hpp"
#include "pipeline/job.hpp"
#include "pipeline/pipeline.hpp"

namespace gemmhoist::pipeline {

class Engine {
 public:
  explicit Engine(const EngineOptions& options) noexcept : options_(options) {}

  Status open(device::Device& device) noexcept;
  // Copy threads end, memory goes back; without a device its memory went with it.
  void close(device::Device* device) noexcept;

  // Serves a job. Whatever the answer, nobody touches the caller's memory afterwards, no copy task of the job
  // is left in the queue, and the streams are idle, unless the answer is device_lost.
  Status run(Job& job, device::Device& device) noexcept;

  // Brings the streams to rest after a failure; device_lost, for good, where they do not come to rest in
  // time.
  Status drain(device::Device& device, bool urgent) noexcept;

  CopyQueue& queue() noexcept { return queue_; }
  CopyPool& pool() noexcept { return pool_; }
  DeviceArena& arena() noexcept { return arena_; }
  const MachineProfile& profile() const noexcept { return profile_; }
  // Whether threads that wait should leave their CPU to those that work.
  bool few_cpus() const noexcept { return usable_cpus_ <= kFewCpus; }
  // Any thread, before a job of this size is handed over: the copy threads that it will want wake meanwhile.
  void expect(const GemmCall& call) noexcept;
  void set_profile(const MachineProfile& profile) noexcept;
  float* pinned() const noexcept { return pinned_; }
  std::int64_t pinned_bytes() const noexcept { return pinned_bytes_; }
  Precision precision() const noexcept { return options_.precision; }
  // Fills the pinned arena's pages, or copies between its halves, with all threads: for measure().
  void run_task(const CopyTask& task) noexcept;

 private:
  Status open_pinned(device::Device& device) noexcept;
  Status execute(Job& job, device::Device& device);
  Status classify(const Job& job, device::Device& device, bool& a_pinned, bool& b_pinned) noexcept;
  Status make_ready(const plan::PlanInput& input, device::Device& device);
  Status refresh_budget(device::Device& device) noexcept;
  Status plan_for(const plan::PlanInput& input);
  void settle(Job& job) noexcept;

  const EngineOptions options_;
  MachineProfile profile_;
  CopyQueue queue_;
  CopyPool pool_;
  DeviceArena arena_;
  float* pinned_ = nullptr;
  std::int64_t pinned_bytes_ = 0;
  bool pinned_registered_ = false;
  static constexpr int kFewCpus = 4;
  int usable_cpus_ = 1;

  // What a plan may use of the device's memory, as last seen; less than the most once memory was short.
  std::int64_t budget_ = 0;
  bool budget_reduced_ = false;
  bool lost_ = false;

  // The last calls' plans: programs repeat their shapes, often several in turn, and a plan costs more than a
  // small product.
  struct Planned {
    plan::PlanInput input;
    plan::Plan plan;
    std::uint64_t used = 0;  // 0: nothing in it
  };
  static constexpr int kPlans = 16;
  Planned plans_[kPlans];
  std::uint64_t plan_uses_ = 0;
  const plan::Plan* plan_ = nullptr;  // of the call
};

}  // namespace gemmhoist::pipeline
