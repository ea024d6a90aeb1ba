#include "dispatch/gpu.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>

#include "config/options.hpp"
#include "device/backend.hpp"
#include "device/worker.hpp"
#include "dispatch/backoff.hpp"
#include "dispatch/device_slot.hpp"
#include "dispatch/profile_store.hpp"
#include "observe/counters.hpp"
#include "os/os.hpp"

namespace gemmhoist::dispatch {
namespace {

using decide::GpuState;

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1'000 * kMillisecond;

// The worker's first act is to take the dynamic loader's lock and let it go: microseconds, unless the thread
// that waits for us holds it.
constexpr std::int64_t kLoaderDeadlineNs = 250 * kMillisecond;
// At exit: what a call or a start under way may still take before the process goes without it.
constexpr std::int64_t kCloseDeadlineNs = 2 * kSecond;
// The measurement of the first device, which the others wait for: it takes some 10 ms.
constexpr std::int64_t kMeasureDeadlineNs = 2 * kSecond;

constexpr int kMaxDevices = 16;

const std::uint32_t* word(const std::atomic<std::uint32_t>& atomic) noexcept {
  return reinterpret_cast<const std::uint32_t*>(&atomic);
}
constexpr int kAll = 1 << 30;

enum class StartStage : std::uint32_t { none, loader_free };
enum class Measuring : std::uint32_t { not_yet, under_way, done };

// Runs once the device is open: makes the engine, measures the machine, declares the device up.
class StartTask final : public device::Task {
 public:
  explicit StartTask(DeviceSlot& slot) noexcept : slot_(slot) {}
  void run(device::Device& device) noexcept override;
  void abandon(Status why) noexcept override;

 private:
  Status make_ready(device::Device& device, pipeline::Engine*& engine) noexcept;
  DeviceSlot& slot_;
};

// Everything below is constant-initialised and never destroyed: calls come before our constructors and after
// our destructors.
constinit DeviceSlot g_devices[kMaxDevices];
// Made anew for each start; a static task would be destroyed at exit.
struct alignas(StartTask) StartTaskStorage {
  unsigned char bytes[sizeof(StartTask)];
};
constinit StartTaskStorage g_start_tasks[kMaxDevices] = {};
constinit std::atomic<int> g_devices_used{0};
// `up` says that some device has come up; how they are now, each of them knows (gpu_state).
constinit std::atomic<std::uint32_t> g_state{static_cast<std::uint32_t>(GpuState::cold)};

constinit std::atomic<std::uint32_t> g_stage{0};
constinit std::atomic<std::int64_t> g_start_began_ns{0};
constinit std::atomic<int> g_starts_pending{0};
constinit std::atomic<bool> g_start_may_pass{false};
constinit std::atomic<std::int64_t> g_next_start_ns{0};  // after a start that failed
constinit std::atomic<std::int64_t> g_start_backoff_ns{kFirstBackoffNs};

constinit std::atomic<std::int64_t> g_earned_ns{0};
constinit decide::GpuTimeLearner g_gpu_times;
constinit std::atomic<std::uint32_t> g_measuring{0};
constinit MachineProfile g_measured_profile;
constinit std::atomic<const MachineProfile*> g_profile{nullptr};

constinit std::atomic<bool> g_early_exit_registered{false};
constinit std::atomic<bool> g_exit_registered{false};
constinit std::atomic<bool> g_closing{false};
constinit std::atomic<std::int64_t> g_close_deadline_ns{0};

GpuState stored_state() noexcept {
  return static_cast<GpuState>(g_state.load(std::memory_order_acquire));
}

bool change_state(GpuState from, GpuState to) noexcept {
  auto expected = static_cast<std::uint32_t>(from);
  if (!g_state.compare_exchange_strong(expected, static_cast<std::uint32_t>(to), std::memory_order_acq_rel)) {
    return false;
  }
  os::futex_wake(word(g_state), kAll);
  return true;
}

// --- the end of the process ---

// No call of ours may reach a driver that has been taken down. The context is left to the system, which frees
// it faster than we could. Callers whose calls are queued take them back, callers that wait for a start stop
// waiting.
void close_at_exit() noexcept {
  if (os::forked_since_armed()) return;  // forked past our hook: the workers are the parent's
  std::int64_t deadline = 0;
  if (g_close_deadline_ns.compare_exchange_strong(deadline, os::monotonic_ns() + kCloseDeadlineNs))
    deadline = g_close_deadline_ns.load();
  g_closing.store(true);
  g_state.store(static_cast<std::uint32_t>(GpuState::lost), std::memory_order_release);
  os::futex_wake(word(g_state), kAll);
  for (DeviceSlot& slot : g_devices) {
    device::Worker* worker = slot.worker.load();
    // One that is stuck in the driver is not going to leave it.
    if (worker != nullptr) (void)worker->close(slot.health() == Health::hung ? 0 : deadline);
  }
}

// Handlers run in reverse order. Registered once the driver is up, ours runs before the driver's own. The
// earlier one is for a process that ends during the start: it comes after what the driver has registered so
// far, but before the destructors of its libraries.
void register_exit(std::atomic<bool>& registered) noexcept {
  if (!registered.exchange(true)) (void)std::atexit(close_at_exit);
}

// --- the start, on workers ---

void declare_loader_free() noexcept {
  g_stage.store(static_cast<std::uint32_t>(StartStage::loader_free), std::memory_order_release);
  os::futex_wake(word(g_stage), kAll);
}

// The factory that the worker runs. Its first line needs the loader's lock, which tells a waiting caller
// whether the start can make progress at all.
std::unique_ptr<device::Device> open_device(std::int32_t ordinal, Status& status) noexcept {
  (void)os::load_library("libc.so.6");
  declare_loader_free();
  register_exit(g_early_exit_registered);
  return device::make_device(ordinal, status);
}

void set_measuring(Measuring stage) noexcept {
  g_measuring.store(static_cast<std::uint32_t>(stage), std::memory_order_release);
  os::futex_wake(word(g_measuring), kAll);
}

// Link, copy and kernel rates of the first device that comes up serve all of them: one host has one kind, or
// the slower estimate does no harm.
Status measure_once(pipeline::Engine& engine, device::Device& device) noexcept {
  auto expected = static_cast<std::uint32_t>(Measuring::not_yet);
  if (!g_measuring.compare_exchange_strong(expected, static_cast<std::uint32_t>(Measuring::under_way))) {
    if (expected == static_cast<std::uint32_t>(Measuring::under_way))
      os::futex_wait(word(g_measuring), expected, os::monotonic_ns() + kMeasureDeadlineNs);
    return {};
  }
  MachineProfile profile = machine_profile();
  if (Status status = pipeline::measure(engine, device, profile); !status.ok()) {
    set_measuring(Measuring::not_yet);
    return status;
  }
  profile.start_s =
      1e-9 * static_cast<double>(os::monotonic_ns() - g_start_began_ns.load(std::memory_order_relaxed));
  g_measured_profile = profile;
  g_profile.store(&g_measured_profile, std::memory_order_release);
  set_measuring(Measuring::done);
  return {};
}

bool any_device_up() noexcept {
  for (const DeviceSlot& slot : g_devices) {
    if (slot.engine.load(std::memory_order_acquire) != nullptr) return true;
  }
  return false;
}

// The first device that comes up ends the start. One that fails while another is up is not tried again.
void start_succeeded() noexcept {
  g_starts_pending.fetch_sub(1, std::memory_order_acq_rel);
  g_start_backoff_ns.store(kFirstBackoffNs, std::memory_order_relaxed);
  (void)change_state(GpuState::starting, GpuState::up);
}

// If none comes up, the last one to fail says so.
void start_failed(Status why) noexcept {
  const bool may_pass = why.code() == StatusCode::out_of_memory || why.code() == StatusCode::device_error;
  if (may_pass) g_start_may_pass.store(true, std::memory_order_relaxed);
  if (g_starts_pending.fetch_sub(1, std::memory_order_acq_rel) != 1 || any_device_up()) return;
  if (!g_start_may_pass.load(std::memory_order_relaxed)) {
    (void)change_state(GpuState::starting, GpuState::absent);
    return;
  }
  const std::int64_t length = g_start_backoff_ns.load(std::memory_order_relaxed);
  g_start_backoff_ns.store(std::min(2 * length, kLastBackoffNs), std::memory_order_relaxed);
  g_next_start_ns.store(os::monotonic_ns() + length, std::memory_order_relaxed);
  (void)change_state(GpuState::starting, GpuState::backoff);
}

void start_device(int index, std::int32_t ordinal) noexcept {
  DeviceSlot& slot = g_devices[index];
  StartTask& task = *new (g_start_tasks[index].bytes) StartTask(slot);
  slot.ordinal.store(ordinal, std::memory_order_relaxed);
  // A worker that takes the task has its device open already: only the engine failed, for want of memory. One
  // whose device could not be opened refuses; it is left as it is (some 200 bytes), since an exit may be
  // looking at it.
  device::Worker* worker = slot.worker.load(std::memory_order_acquire);
  if (worker != nullptr && worker->submit(task)) return;
  worker = device::start_worker(open_device, ordinal, task);
  if (worker == nullptr) {
    start_failed(Status(StatusCode::device_error, "thread"));
    return;
  }
  slot.worker.store(worker);
  // An exit that came in between has not seen it.
  if (g_closing.load()) (void)worker->close(0);
}

// Starts those of `count` devices that are not under way yet.
void start_devices(const std::int32_t* ordinals, int count) noexcept {
  const int first = g_devices_used.load(std::memory_order_relaxed);
  if (count <= first) return;
  // All counted before any can fail, so that the last one is told for sure.
  g_starts_pending.fetch_add(count - first, std::memory_order_acq_rel);
  g_devices_used.store(count, std::memory_order_relaxed);
  for (int i = first; i < count; ++i) start_device(i, ordinals[i]);
}

// How many devices "all" are is known once the driver is up: then the first worker starts the others.
void start_those_found_since(const DeviceSlot& slot) noexcept {
  if (&slot != &g_devices[0] || g_closing.load()) return;
  std::int32_t ordinals[kMaxDevices];
  const int count = device::selected_devices(ordinals, kMaxDevices);
  start_devices(ordinals, count);
}

Status StartTask::make_ready(device::Device& device, pipeline::Engine*& engine) noexcept {
  const config::Options& options = config::options();
  pipeline::EngineOptions engine_options;
  engine_options.host_threads = options.host_threads;
  engine_options.pinned_bytes = options.pinned_mib << 20;
  engine_options.device_bytes = options.device_mib << 20;
  engine_options.precision = options.precision;
  GEMMHOIST_RETURN_IF_FAILED(pipeline::make_engine(device, engine_options, engine));
  // Without figures of its own a device still serves; one that was lost meanwhile does not.
  const Status measured = measure_once(*engine, device);
  if (measured.code() != StatusCode::device_lost) return {};
  pipeline::close_engine(engine, nullptr);
  return measured;
}

void StartTask::run(device::Device& device) noexcept {
  declare_loader_free();
  register_exit(g_exit_registered);
  start_those_found_since(slot_);
  if (g_closing.load()) {
    start_failed(Status(StatusCode::cancelled, "exit"));
    return;
  }
  pipeline::Engine* engine = nullptr;
  if (Status status = make_ready(device, engine); !status.ok()) {
    start_failed(status);
    return;
  }
  pipeline::set_profile(*engine, machine_profile());
  slot_.engine.store(engine, std::memory_order_release);
  observe::add(observe::Counter::gpu_starts);
  start_succeeded();
}

void StartTask::abandon(Status why) noexcept {
  start_those_found_since(slot_);
  start_failed(why);
}

// --- state ---

// Of devices that have come up: up while any may be used, lost when all of them are.
GpuState state_of_devices() noexcept {
  bool resting = false;
  for (int i = 0; i < g_devices_used.load(std::memory_order_relaxed); ++i) {
    const Health health = g_devices[i].health();
    if (health == Health::usable) return GpuState::up;
    resting = resting || health == Health::resting || health == Health::hung;
  }
  if (resting) return GpuState::backoff;
  (void)change_state(GpuState::up, GpuState::lost);
  return stored_state();
}

// The device with the least work before it; null when none may be used. One that rests is used by those who
// insist, if no other is there.
DeviceSlot* least_busy_device(bool insists) noexcept {
  DeviceSlot* best = nullptr;
  bool best_rests = true;
  for (int i = 0; i < g_devices_used.load(std::memory_order_relaxed); ++i) {
    DeviceSlot& slot = g_devices[i];
    const Health health = slot.health();
    const bool rests = health == Health::resting;
    if (health != Health::usable && !(rests && insists)) continue;
    if (best == nullptr || rests < best_rests ||
        (rests == best_rests && slot.queued_ns() < best->queued_ns())) {
      best = &slot;
      best_rests = rests;
    }
  }
  return best;
}

}  // namespace

decide::GpuState gpu_state() noexcept {
  switch (const GpuState state = stored_state()) {
    case GpuState::up:
      return state_of_devices();
    case GpuState::backoff:  // of a start that failed: when its time is over, another may begin
      if (os::monotonic_ns() < g_next_start_ns.load(std::memory_order_relaxed)) return state;
      (void)change_state(GpuState::backoff, GpuState::cold);
      return stored_state();
    case GpuState::cold:
      if (device::backend_plausible()) return state;
      (void)change_state(GpuState::cold, GpuState::absent);
      return stored_state();
    default:
      return state;
  }
}

double gpu_queue_seconds() noexcept {
  const DeviceSlot* slot = least_busy_device(false);
  return slot == nullptr ? 0 : 1e-9 * static_cast<double>(slot->queued_ns());
}

double gpu_start_remaining_seconds() noexcept {
  const double whole = machine_profile().start_s;
  if (stored_state() != GpuState::starting) return whole;
  const auto begun = g_start_began_ns.load(std::memory_order_relaxed);
  const double remaining = whole - 1e-9 * static_cast<double>(os::monotonic_ns() - begun);
  // Late already: as much more as it is late, for who is late by a little soon comes.
  return std::max(std::abs(remaining), 0.1 * whole);
}

const MachineProfile& machine_profile() noexcept {
  const MachineProfile* measured = g_profile.load(std::memory_order_acquire);
  return measured != nullptr ? *measured : initial_profile();
}

bool machine_was_measured() noexcept {
  return g_profile.load(std::memory_order_acquire) != nullptr;
}

decide::GpuTimeLearner& gpu_times() noexcept {
  return g_gpu_times;
}

double gpu_earned_seconds() noexcept {
  return 1e-9 * static_cast<double>(g_earned_ns.load(std::memory_order_relaxed));
}

void gpu_add_earned(double seconds) noexcept {
  if (stored_state() != GpuState::cold) return;
  g_earned_ns.fetch_add(static_cast<std::int64_t>(seconds * 1e9), std::memory_order_relaxed);
}

void start_gpu() noexcept {
  if (!change_state(GpuState::cold, GpuState::starting)) return;
  os::arm_fork_detection();
  g_start_began_ns.store(os::monotonic_ns(), std::memory_order_relaxed);
  g_start_may_pass.store(false, std::memory_order_relaxed);
  g_earned_ns.store(0, std::memory_order_relaxed);  // spent: should this start fail, the next is earned anew
  g_stage.store(static_cast<std::uint32_t>(StartStage::none), std::memory_order_relaxed);
  g_devices_used.store(0, std::memory_order_relaxed);
  std::int32_t ordinals[kMaxDevices];
  const int count = device::selected_devices(ordinals, kMaxDevices);
  if (count == 0) (void)change_state(GpuState::starting, GpuState::absent);
  start_devices(ordinals, count);
}

bool await_gpu(std::int64_t patience_ns) noexcept {
  const std::int64_t begun = os::monotonic_ns();
  const std::int64_t loader_deadline = begun + std::min(patience_ns, kLoaderDeadlineNs);
  while (g_stage.load(std::memory_order_acquire) != static_cast<std::uint32_t>(StartStage::loader_free)) {
    if (stored_state() != GpuState::starting || os::monotonic_ns() >= loader_deadline) break;
    os::futex_wait(word(g_stage), static_cast<std::uint32_t>(StartStage::none), loader_deadline);
  }
  const bool loads = g_stage.load(std::memory_order_acquire) != 0;
  while (loads && stored_state() == GpuState::starting && os::monotonic_ns() < begun + patience_ns) {
    os::futex_wait(word(g_state), static_cast<std::uint32_t>(GpuState::starting), begun + patience_ns);
  }
  return gpu_state() == GpuState::up;
}

GpuAnswer run_on_gpu(pipeline::Job& job, const decide::Decision& decision) noexcept {
  const os::DefaultFloatingPoint environment;
  DeviceSlot* slot = least_busy_device(decision.reason == decide::Reason::forced_gpu);
  return slot == nullptr ? GpuAnswer{} : slot->run(job, decision);
}

void gpu_after_fork() noexcept {
  const GpuState state = stored_state();
  // The parent started nothing: the child may. A start that failed counts, where it had got as far as the
  // driver: a child cannot use what its parent initialised.
  if (state == GpuState::absent || (state == GpuState::cold && !os::forked_since_armed())) return;
  g_state.store(static_cast<std::uint32_t>(GpuState::lost), std::memory_order_relaxed);
  for (DeviceSlot& slot : g_devices) slot.forget();
}

}  // namespace gemmhoist::dispatch
