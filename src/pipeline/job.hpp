// Job: one call on its way through a device; what caller, copy threads and worker share of it.
#pragma once

#include <atomic>
#include <cstdint>

#include "pipeline/copy_queue.hpp"
#include "pipeline/ledger.hpp"
#include "pipeline/pipeline.hpp"

namespace gemmhoist::pipeline {

enum class Phase : std::uint32_t { queued, running, finished };

class Job final : public device::Task {
 public:
  Job(const GemmCall& product, Precision mode) noexcept;

  // --- worker ---
  void run(device::Device& device) noexcept override;
  void abandon(Status why) noexcept override;
  // Wakes the caller if it sleeps: there is something to copy.
  void nudge() noexcept;

  const GemmCall call;
  const Precision precision;
  const std::int64_t begin_ns;
  Engine* engine = nullptr;

  // Closed when the call is taken back: by the caller at its deadline, or by the worker after a failure.
  Gate gate;
  // Set, complete, before anything is written back; null before that: all of C is the caller's.
  std::atomic<Ledger*> ledger{nullptr};

  // Written by the worker before the phase becomes finished.
  Status worker_status;
  CallTimes call_times;
  Leftover leftovers;
  std::int64_t uploaded_bytes = 0, downloaded_bytes = 0;
  std::atomic<const char*> kernel{""};  // the one that does most of the arithmetic

  std::atomic<Phase> phase{Phase::queued};
  // The caller's own: true when its deadline passed before the worker was done.
  bool gave_up = false;
  std::int64_t spin_ns = 0;  // without work, before it sleeps
  // While set, the caller may be inside the engine's copy queue: the engine must not go away.
  std::atomic<bool> caller_helps{false};

  bool help() noexcept;               // caller: copies a piece; false when there is none
  void sleep(std::int64_t) noexcept;  // caller: until nudged or finished, or the deadline

 private:
  void finish(Status status) noexcept;

  std::atomic<std::uint32_t> nudges_{0};
  std::atomic<bool> caller_sleeps_{false};
};

}  // namespace gemmhoist::pipeline
