#include "dispatch/gpu.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "config/options.hpp"
#include "device/backend.hpp"
#include "device/worker.hpp"
#include "dispatch/profile_store.hpp"
#include "observe/counters.hpp"
#include "observe/decision_log.hpp"
#include "os/os.hpp"

namespace gemmhoist::dispatch {
namespace {

using decide::GpuState;

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1'000 * kMillisecond;

// A start takes 0.3 s on a quiet machine and several where many processes start at once or the driver has to
// be woken; past this, waiting for it is no longer what anybody wants.
constexpr std::int64_t kStartDeadlineNs = 20 * kSecond;
// The worker's first act is to take the dynamic loader's lock and let it go: microseconds, unless the thread
// that waits for us holds it.
constexpr std::int64_t kLoaderDeadlineNs = 250 * kMillisecond;
// At exit: what a call under way may still take before the process goes without it.
constexpr std::int64_t kCloseDeadlineNs = 2 * kSecond;
// A call's deadline: ten times its prediction, and two seconds for a machine that is busy with other things.
constexpr double kDeadlineFactor = 10;
constexpr std::int64_t kDeadlineSlackNs = 2 * kSecond;
// After a failure that may pass (memory that somebody else holds): doubled from the first value to the last.
constexpr std::int64_t kFirstBackoffNs = 100 * kMillisecond;
constexpr std::int64_t kLastBackoffNs = 10 * kSecond;
// Failures in a row, none of them for want of memory, after which the device is given up.
constexpr int kFailuresToLose = 8;

constexpr int kMaxDevices = 16;

enum class StartStage : std::uint32_t { none, loader_free };

struct DeviceSlot;

// Runs once the device is open: makes the engine, measures the machine, declares the device up.
class StartTask final : public device::Task {
 public:
  constexpr StartTask() noexcept = default;
  void run(device::Device& device) noexcept override;
  void abandon(Status why) noexcept override;
  DeviceSlot* slot = nullptr;
};

struct DeviceSlot {
  StartTask start;
  std::atomic<device::Worker*> worker{nullptr};    // null: no thread, or its device could not be opened
  std::atomic<pipeline::Engine*> engine{nullptr};  // set: the device is up
  std::atomic<std::int64_t> queued_ns{0};
};

// Everything below is constant-initialised and never destroyed: calls come before our constructors and after
// our destructors.
constinit std::atomic<std::uint32_t> g_state{static_cast<std::uint32_t>(GpuState::cold)};
constinit std::atomic<std::uint32_t> g_stage{0};
constinit std::atomic<std::int64_t> g_start_began_ns{0};
constinit std::atomic<std::int64_t> g_backoff_until_ns{0};
constinit std::atomic<std::int64_t> g_backoff_ns{kFirstBackoffNs};
constinit std::atomic<int> g_failures_in_a_row{0};
constinit std::atomic<std::int64_t> g_earned_ns{0};
constinit decide::GpuTimeLearner g_gpu_times;
constinit std::atomic<int> g_starts_pending{0};
constinit std::atomic<bool> g_start_may_pass{false};
constinit std::atomic<bool> g_exit_registered{false};
constinit std::atomic<bool> g_measuring{false};
constinit MachineProfile g_measured_profile;
constinit std::atomic<const MachineProfile*> g_profile{nullptr};
constinit DeviceSlot g_devices[kMaxDevices];

void set_state(GpuState state) noexcept {
  g_state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
  os::futex_wake(reinterpret_cast<const std::uint32_t*>(&g_state), 1 << 30);
}

bool change_state(GpuState from, GpuState to) noexcept {
  auto expected = static_cast<std::uint32_t>(from);
  if (!g_state.compare_exchange_strong(expected, static_cast<std::uint32_t>(to), std::memory_order_acq_rel)) {
    return false;
  }
  os::futex_wake(reinterpret_cast<const std::uint32_t*>(&g_state), 1 << 30);
  return true;
}

void begin_backoff() noexcept {
  const std::int64_t length = g_backoff_ns.load(std::memory_order_relaxed);
  g_backoff_ns.store(length * 2 < kLastBackoffNs ? length * 2 : kLastBackoffNs, std::memory_order_relaxed);
  g_backoff_until_ns.store(os::monotonic_ns() + length, std::memory_order_relaxed);
}

void lose_gpu(Status why) noexcept {
  observe::add(observe::Counter::gpu_failures);
  if (gpu_state() == GpuState::lost) return;
  set_state(GpuState::lost);
  observe::warn(observe::Warning::gpu_lost, "the GPU is lost (%s: %s, error %d); the CPU goes on", why.what(),
                to_string(why.code()), why.native());
}

// Runs in exit(), before the driver's own handler since it was registered after that: no call of ours may
// reach a driver that has been taken down. The context is left to the system, which frees it faster than we
// could.
void close_at_exit() noexcept {
  const std::int64_t deadline = os::monotonic_ns() + kCloseDeadlineNs;
  g_state.store(static_cast<std::uint32_t>(GpuState::lost), std::memory_order_release);
  for (DeviceSlot& slot : g_devices) {
    if (device::Worker* worker = slot.worker.load(std::memory_order_acquire)) {
      (void)worker->close(deadline);
    }
  }
}

// The factory that the worker runs. Its first line needs the loader's lock, which tells a waiting caller
// whether the start can make progress at all.
std::unique_ptr<device::Device> open_device(std::int32_t ordinal, Status& status) noexcept {
  (void)os::load_library("libc.so.6");
  g_stage.store(static_cast<std::uint32_t>(StartStage::loader_free), std::memory_order_release);
  os::futex_wake(reinterpret_cast<const std::uint32_t*>(&g_stage), 1 << 30);
  return device::make_device(ordinal, status);
}

// Link, copy and kernel rates of the first device that comes up serve all of them: one host has one kind, or
// the slower estimate does no harm.
void measure_once(pipeline::Engine& engine, device::Device& device) noexcept {
  if (g_measuring.exchange(true)) return;
  MachineProfile profile = machine_profile();
  if (!pipeline::measure(engine, device, profile).ok()) return;
  profile.start_s =
      1e-9 * static_cast<double>(os::monotonic_ns() - g_start_began_ns.load(std::memory_order_relaxed));
  g_measured_profile = profile;
  g_profile.store(&g_measured_profile, std::memory_order_release);
}

bool any_device_up() noexcept {
  for (const DeviceSlot& slot : g_devices) {
    if (slot.engine.load(std::memory_order_acquire) != nullptr) return true;
  }
  return false;
}

// The first device that comes up ends the start; if none does, the last one to fail says what it was.
void start_succeeded() noexcept {
  g_starts_pending.fetch_sub(1, std::memory_order_acq_rel);
  g_backoff_ns.store(kFirstBackoffNs, std::memory_order_relaxed);
  (void)change_state(GpuState::starting, GpuState::up);
}

void start_failed(Status why) noexcept {
  const bool may_pass = why.code() == StatusCode::out_of_memory || why.code() == StatusCode::device_error;
  if (may_pass) g_start_may_pass.store(true, std::memory_order_relaxed);
  if (g_starts_pending.fetch_sub(1, std::memory_order_acq_rel) != 1 || any_device_up()) return;
  if (g_start_may_pass.load(std::memory_order_relaxed)) {
    begin_backoff();
    (void)change_state(GpuState::starting, GpuState::backoff);
  } else {
    (void)change_state(GpuState::starting, GpuState::absent);
  }
}

void StartTask::run(device::Device& device) noexcept {
  const config::Options& options = config::options();
  if (!g_exit_registered.exchange(true)) (void)std::atexit(close_at_exit);

  pipeline::EngineOptions engine_options;
  engine_options.host_threads = options.host_threads;
  engine_options.pinned_bytes = options.pinned_mib << 20;
  engine_options.device_bytes = options.device_mib << 20;
  pipeline::Engine* engine = nullptr;
  if (Status status = pipeline::make_engine(device, engine_options, engine); !status.ok()) {
    start_failed(status);
    return;
  }
  measure_once(*engine, device);
  pipeline::set_profile(*engine, machine_profile());
  slot->engine.store(engine, std::memory_order_release);
  observe::add(observe::Counter::gpu_starts);
  start_succeeded();
}

void StartTask::abandon(Status why) noexcept {
  slot->worker.store(nullptr, std::memory_order_release);  // a later start makes a new thread
  start_failed(why);
}

// The device with the least work before it; null when none is up.
DeviceSlot* least_busy_device() noexcept {
  DeviceSlot* best = nullptr;
  for (DeviceSlot& slot : g_devices) {
    if (slot.engine.load(std::memory_order_acquire) == nullptr) continue;
    if (best == nullptr ||
        slot.queued_ns.load(std::memory_order_relaxed) < best->queued_ns.load(std::memory_order_relaxed)) {
      best = &slot;
    }
  }
  return best;
}

void call_went_well(double estimated_s, double measured_s) noexcept {
  g_failures_in_a_row.store(0, std::memory_order_relaxed);
  g_backoff_ns.store(kFirstBackoffNs, std::memory_order_relaxed);
  g_gpu_times.learn(estimated_s, measured_s);
}

void call_failed(const pipeline::Job& job) noexcept {
  const Status status = pipeline::status(job);
  switch (status.code()) {
    case StatusCode::ok:
    case StatusCode::unsupported:
    case StatusCode::cancelled:
      return;
    case StatusCode::out_of_memory:
      begin_backoff();
      (void)change_state(GpuState::up, GpuState::backoff);
      return;
    case StatusCode::device_error:
    case StatusCode::unavailable:
      observe::add(observe::Counter::gpu_failures);
      if (g_failures_in_a_row.fetch_add(1, std::memory_order_relaxed) + 1 < kFailuresToLose) {
        begin_backoff();
        (void)change_state(GpuState::up, GpuState::backoff);
        return;
      }
      [[fallthrough]];
    case StatusCode::device_lost:
    case StatusCode::timed_out:
      lose_gpu(status);
      return;
  }
}

}  // namespace

decide::GpuState gpu_state() noexcept {
  auto state = static_cast<GpuState>(g_state.load(std::memory_order_acquire));
  if (state == GpuState::backoff &&
      os::monotonic_ns() >= g_backoff_until_ns.load(std::memory_order_relaxed)) {
    // Its time is over. A GPU that was up is so again; one that could not start is cold.
    (void)change_state(GpuState::backoff, any_device_up() ? GpuState::up : GpuState::cold);
    state = static_cast<GpuState>(g_state.load(std::memory_order_acquire));
  }
  if (state == GpuState::cold && !device::backend_plausible()) {
    (void)change_state(GpuState::cold, GpuState::absent);
    state = GpuState::absent;
  }
  return state;
}

double gpu_queue_seconds() noexcept {
  const DeviceSlot* slot = least_busy_device();
  return slot == nullptr ? 0 : 1e-9 * static_cast<double>(slot->queued_ns.load(std::memory_order_relaxed));
}

double gpu_start_remaining_seconds() noexcept {
  const double whole = machine_profile().start_s;
  if (gpu_state() != GpuState::starting) return whole;
  const auto begun = g_start_began_ns.load(std::memory_order_relaxed);
  const double remaining = whole - 1e-9 * static_cast<double>(os::monotonic_ns() - begun);
  return std::max(remaining, 0.1 * whole);  // late already: some more, nobody knows how much
}

const MachineProfile& machine_profile() noexcept {
  const MachineProfile* measured = g_profile.load(std::memory_order_acquire);
  return measured != nullptr ? *measured : initial_profile();
}

decide::GpuTimeLearner& gpu_times() noexcept {
  return g_gpu_times;
}

double gpu_earned_seconds() noexcept {
  return 1e-9 * static_cast<double>(g_earned_ns.load(std::memory_order_relaxed));
}

void gpu_add_earned(double seconds) noexcept {
  g_earned_ns.fetch_add(static_cast<std::int64_t>(seconds * 1e9), std::memory_order_relaxed);
}

void start_gpu() noexcept {
  if (!change_state(GpuState::cold, GpuState::starting)) return;
  os::arm_fork_detection();
  g_start_began_ns.store(os::monotonic_ns(), std::memory_order_relaxed);
  g_start_may_pass.store(false, std::memory_order_relaxed);
  std::int32_t ordinals[kMaxDevices];
  const int count = device::selected_devices(ordinals, kMaxDevices);
  g_starts_pending.store(count, std::memory_order_release);
  if (count == 0) {
    (void)change_state(GpuState::starting, GpuState::absent);
    return;
  }
  for (int i = 0; i < count; ++i) {
    DeviceSlot& slot = g_devices[i];
    slot.start.slot = &slot;
    // A worker that is there has its device open already: only the engine failed, for want of memory.
    device::Worker* worker = slot.worker.load(std::memory_order_acquire);
    if (worker != nullptr && worker->submit(slot.start)) continue;
    worker = device::start_worker(open_device, ordinals[i], slot.start);
    if (worker != nullptr) {
      slot.worker.store(worker, std::memory_order_release);
    } else {
      start_failed(Status(StatusCode::device_error, "thread"));
    }
  }
}

bool await_gpu() noexcept {
  const std::int64_t begun = os::monotonic_ns();
  const auto* stage = reinterpret_cast<const std::uint32_t*>(&g_stage);
  while (g_stage.load(std::memory_order_acquire) != static_cast<std::uint32_t>(StartStage::loader_free)) {
    if (os::monotonic_ns() >= begun + kLoaderDeadlineNs) return false;
    os::futex_wait(stage, static_cast<std::uint32_t>(StartStage::none), begun + kLoaderDeadlineNs);
  }
  const auto* state = reinterpret_cast<const std::uint32_t*>(&g_state);
  while (g_state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(GpuState::starting)) {
    if (os::monotonic_ns() >= begun + kStartDeadlineNs) return false;
    os::futex_wait(state, static_cast<std::uint32_t>(GpuState::starting), begun + kStartDeadlineNs);
  }
  return gpu_state() == GpuState::up;
}

GpuAnswer run_on_gpu(pipeline::Job& job, const decide::Decision& decision) noexcept {
  GpuAnswer answer;
  DeviceSlot* slot = least_busy_device();
  if (slot == nullptr) return answer;
  device::Worker* worker = slot->worker.load(std::memory_order_acquire);
  pipeline::Engine* engine = slot->engine.load(std::memory_order_acquire);
  if (worker == nullptr || engine == nullptr) return answer;

  const auto predicted_ns = static_cast<std::int64_t>(decision.gpu_s * 1e9);
  const std::int64_t queued_ns =
      slot->queued_ns.fetch_add(predicted_ns, std::memory_order_relaxed) + predicted_ns;
  device::Task& task = pipeline::as_task(job, *engine);
  if (!worker->submit(task)) {
    task.abandon(Status(StatusCode::cancelled, "worker closing"));
  } else {
    const std::int64_t limit_ms = config::options().deadline_ms;
    const std::int64_t patience_ns =
        limit_ms > 0
            ? limit_ms * kMillisecond
            : static_cast<std::int64_t>(kDeadlineFactor * static_cast<double>(queued_ns)) + kDeadlineSlackNs;
    answer.tried = true;
    answer.outcome = pipeline::wait(job, os::monotonic_ns() + patience_ns);
    if (answer.outcome == pipeline::Outcome::done) {
      // Time in the queue is not the call's own, and is predicted apart.
      if (queued_ns == predicted_ns) call_went_well(decision.gpu_estimate_s, pipeline::times(job).total_s);
    } else {
      call_failed(job);
    }
  }
  slot->queued_ns.fetch_sub(predicted_ns, std::memory_order_relaxed);
  return answer;
}

void gpu_after_fork() noexcept {
  switch (static_cast<GpuState>(g_state.load(std::memory_order_relaxed))) {
    case GpuState::cold:
    case GpuState::absent:
      return;  // the parent started nothing: the child may
    default:
      g_state.store(static_cast<std::uint32_t>(GpuState::lost), std::memory_order_relaxed);
      // Threads and context are the parent's. What they held is not even looked at.
      for (DeviceSlot& slot : g_devices) {
        slot.worker.store(nullptr, std::memory_order_relaxed);
        slot.engine.store(nullptr, std::memory_order_relaxed);
        slot.queued_ns.store(0, std::memory_order_relaxed);
      }
  }
}

}  // namespace gemmhoist::dispatch
