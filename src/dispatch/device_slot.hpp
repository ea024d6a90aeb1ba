// One device as the dispatcher sees it: its worker and engine, what is queued there, and its health.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "decide/decide.hpp"
#include "device/worker.hpp"
#include "dispatch/gpu.hpp"
#include "pipeline/pipeline.hpp"

namespace gemmhoist::dispatch {

enum class Health : std::uint8_t {
  not_up,  // never started, or its start failed
  usable,
  resting,  // after a failure that may pass; whoever insists may try it
  hung,     // a call's deadline passed and the worker has not come back from it: nothing is handed over
  lost,     // for good
};

// All of it from any thread; nothing blocks but run(). Constant-initialised, and nothing in it wants to be
// destroyed: calls come before our constructors and after our destructors.
class DeviceSlot {
 public:
  // --- set by the start ---
  std::atomic<std::int32_t> ordinal{0};
  std::atomic<device::Worker*> worker{nullptr};    // null: no thread yet
  std::atomic<pipeline::Engine*> engine{nullptr};  // set: the device has come up

  Health health() noexcept;
  std::int64_t queued_ns() const noexcept { return queued_ns_.load(std::memory_order_relaxed); }
  // Hands the job over and waits for it.
  GpuAnswer run(pipeline::Job& job, const decide::Decision& decision) noexcept;
  // In a forked child: threads and context are the parent's. What they held is not even looked at.
  void forget() noexcept;

 private:
  class Probe;

  void went_well(const decide::Decision& decision, std::int64_t begun_ns, std::int64_t ended_ns,
                 std::uint32_t ticket) noexcept;
  void went_wrong(Status why, std::int64_t begun_ns) noexcept;
  bool is_news(std::int64_t begun_ns) noexcept;
  void rest() noexcept;
  void await_worker() noexcept;
  bool lose(Status why) noexcept;  // false: it was lost already

  std::atomic<std::int64_t> queued_ns_{0};  // predicted, of calls handed over and not finished

  // For what calls took by themselves, though they queued: who was handed over last, and who finished when.
  std::atomic<std::uint32_t> tickets_{0};
  std::atomic<std::uint32_t> finished_ticket_{0};
  std::atomic<std::int64_t> finished_at_ns_{0};

  std::atomic<std::int64_t> failed_at_ns_{0};
  std::atomic<std::int64_t> rest_until_ns_{0};
  std::atomic<std::int64_t> next_rest_ns_{0};  // 0: the first
  std::atomic<int> failures_{0};               // in a row, weighted
  std::atomic<bool> hung_{false};
  std::atomic<bool> lost_{false};
  // A task has a virtual destructor, which a static object's would run at exit: hence only room for one.
  alignas(void*) unsigned char probe_[4 * sizeof(void*)] = {};
};
static_assert(std::is_trivially_destructible_v<DeviceSlot>);

}  // namespace gemmhoist::dispatch
