#include "pipeline/engine.hpp"

#include <sched.h>

#include <algorithm>
#include <limits>
#include <new>

#include "observe/decision_log.hpp"
#include "observe/trace.hpp"
#include "os/os.hpp"
#include "pipeline/execution.hpp"
#include "pipeline/host_copy.hpp"
#include "pipeline/scheduling.hpp"

namespace gemmhoist::pipeline {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kLeastPinned = 1 << 20;

// After a failure the streams must come to rest before slots and panels are used again. What was queued is a
// few chunks and kernels: milliseconds, or a device that hangs. When a caller waits for its failed call the
// shorter patience serves it.
constexpr std::int64_t kDrainNs = 2'000 * kMillisecond;
constexpr std::int64_t kUrgentDrainNs = 500 * kMillisecond;
constexpr int kDrainAttempts = 3;  // one of its own calls may fail too

// Left for others on the same device, and for the driver's own needs (kernels' stacks, its heaps).
std::int64_t reserve_of(std::int64_t free_bytes) noexcept {
  return std::min<std::int64_t>(free_bytes / 16, std::int64_t{256} << 20);
}

// Beside the plan's buffers: the panels' slack.
constexpr std::int64_t kSlackBytes = 16 << 10;

bool same(const plan::PlanInput& x, const plan::PlanInput& y) noexcept {
  return x.m == y.m && x.n == y.n && x.k == y.k && x.trans_a == y.trans_a && x.trans_b == y.trans_b &&
         x.beta_zero == y.beta_zero && x.a_pinned == y.a_pinned && x.b_pinned == y.b_pinned &&
         x.precision == y.precision && x.device_bytes == y.device_bytes && x.pinned_bytes == y.pinned_bytes;
}

DeviceArena::Sizes arena_sizes(const plan::PlanInput& input, const plan::Plan& plan) noexcept {
  const bool landing = input.trans_a == Transpose::yes || input.trans_b == Transpose::no;
  return DeviceArena::sizes(plan, landing ? landing_slots(plan) * plan.chunk_bytes : 0);
}

bool out_of_memory(const Status& status) noexcept {
  return status.code() == StatusCode::out_of_memory;
}

}  // namespace

Status Engine::open(device::Device& device) noexcept {
  prefer_short_slice();
  usable_cpus_ = os::usable_cpus();
  const int wanted = options_.host_threads > 0 ? options_.host_threads : default_copy_threads(usable_cpus_);
  profile_.host_threads = pool_.start(queue_, wanted, few_cpus()) + 1;  // the caller is one
  profile_.sm_count = device.properties().sm_count;
  GEMMHOIST_RETURN_IF_FAILED(open_pinned(device));
  return refresh_budget(device);
}

// Page-locked once, here: locking costs 21 ms for 256 MiB of ready pages and four times that where the driver
// must make them. A system that grants less gets by with less.
Status Engine::open_pinned(device::Device& device) noexcept {
  Status status(StatusCode::out_of_memory, "pinned arena");
  for (std::int64_t bytes = std::max(options_.pinned_bytes, kLeastPinned); bytes >= kLeastPinned;
       bytes /= 2) {
    pinned_ = static_cast<float*>(os::map_arena(static_cast<std::size_t>(bytes)));
    if (pinned_ == nullptr) continue;
    pinned_bytes_ = bytes;
    CopyTask touch;
    touch.kind = CopyKind::touch;
    touch.destination = pinned_;
    touch.pieces = cut(bytes / static_cast<std::int64_t>(sizeof(float)), 1, std::int64_t{1} << 20);
    run_task(touch);
    status = device.pin(pinned_, static_cast<std::size_t>(bytes));
    if (status.ok()) {
      pinned_registered_ = true;
      return status;
    }
    os::unmap(pinned_, static_cast<std::size_t>(bytes));
    pinned_ = nullptr;
    pinned_bytes_ = 0;
    if (status.code() == StatusCode::device_lost) break;
  }
  return status;
}

void Engine::close(device::Device* device) noexcept {
  pool_.stop();
  if (device != nullptr && !lost_) {
    (void)arena_.release_all(*device);
    if (pinned_registered_ && device->unpin(pinned_).ok()) pinned_registered_ = false;
  }
  // What the driver still has registered must stay mapped, also where the device was lost: while it knows
  // these addresses, the program's own copies from or to memory that is mapped there next would go to the old
  // pages.
  if (pinned_ != nullptr && !pinned_registered_) os::unmap(pinned_, static_cast<std::size_t>(pinned_bytes_));
}

void Engine::set_profile(const MachineProfile& profile) noexcept {
  const int threads = profile_.host_threads;
  const int sms = profile_.sm_count;
  profile_ = profile;
  if (profile_.sm_count == 0) profile_.sm_count = sms;
  profile_.host_threads = threads;
  for (Planned& planned : plans_) planned.used = 0;
}

void Engine::run_task(const CopyTask& task) noexcept {
  CopyQueue::Ticket ticket{};
  while (!queue_.publish(task, ticket)) sched_yield();
  while (!queue_.complete(ticket)) {
    if (!queue_.work(CopyQueue::kWorker)) pause();
  }
}

// One thread for each 256 KiB to be staged: a thread copies that much in some 30 us, while the next ones
// wake.
void Engine::expect(const GemmCall& call) noexcept {
  constexpr double kBytesAThread = 256 << 10;
  const double operands = static_cast<double>(call.m + call.n) * static_cast<double>(call.k);
  const double result = static_cast<double>(call.m) * static_cast<double>(call.n);
  const double threads = (operands + result) * sizeof(float) / kBytesAThread;
  pool_.rouse(static_cast<int>(std::min(threads, double{CopyPool::kMostThreads})));
}

Status Engine::run(Job& job, device::Device& device) noexcept {
  if (lost_) return Status(StatusCode::device_lost, "device lost before");
  pool_.set_active(true);
  Status status;
  try {
    status = execute(job, device);
  } catch (const std::bad_alloc&) {
    status = Status(StatusCode::out_of_memory, "host memory");
  } catch (...) {
    status = Status(StatusCode::device_error, "exception");
  }
  const bool failed = !status.ok();
  if (failed) job.gate.close();
  settle(job);
  pool_.set_active(false);
  if (status.code() == StatusCode::device_lost) {
    lost_ = true;
  } else if (failed) {
    if (Status drained = drain(device, status.code() != StatusCode::cancelled); !drained.ok()) return drained;
  }
  return status;
}

// Every task of the job leaves the queue: after the gate closed its pieces move nothing.
void Engine::settle(Job& job) noexcept {
  queue_.finish_all();
  if (job.gate.is_closed()) job.gate.wait_until_empty();
}

Status Engine::drain(device::Device& device, bool urgent) noexcept {
  Status status;
  for (int i = 0; i < kDrainAttempts; ++i) {
    status = device.drain(observe::now_ns() + (urgent ? kUrgentDrainNs : kDrainNs));
    if (status.ok()) return status;
    if (status.code() == StatusCode::device_lost || status.code() == StatusCode::timed_out) break;
  }
  lost_ = true;
  return Status(StatusCode::device_lost, status.what(), status.native());
}

Status Engine::classify(const Job& job, device::Device& device, bool& a_pinned, bool& b_pinned) noexcept {
  const GemmCall& call = job.call;
  const auto look = [&](const float* data, std::int64_t ld, bool plain, std::int64_t span, bool& pinned) {
    // Columns of the stored operand: `width` contiguous elements, `columns` of them.
    const std::int64_t width = plain ? span : call.k, columns = plain ? call.k : span;
    const device::HostMemory kind =
        device.classify(data, static_cast<std::size_t>(width) * sizeof(float),
                        static_cast<std::size_t>(ld) * sizeof(float), static_cast<std::size_t>(columns));
    pinned = kind == device::HostMemory::pinned;
    return kind != device::HostMemory::device;
  };
  if (!look(call.a, call.lda, k_outer(call, plan::Operand::a), call.m, a_pinned) ||
      !look(call.b, call.ldb, k_outer(call, plan::Operand::b), call.n, b_pinned)) {
    return Status(StatusCode::unsupported, "device-only operand");
  }
  const device::HostMemory c =
      device.classify(call.c, static_cast<std::size_t>(call.m) * sizeof(float),
                      static_cast<std::size_t>(call.ldc) * sizeof(float), static_cast<std::size_t>(call.n));
  return c == device::HostMemory::device ? Status(StatusCode::unsupported, "device-only result") : Status();
}

Status Engine::execute(Job& job, device::Device& device) {
  const GemmCall& call = job.call;
  plan::PlanInput input;
  input.m = call.m;
  input.n = call.n;
  input.k = call.k;
  input.trans_a = call.trans_a;
  input.trans_b = call.trans_b;
  input.beta_zero = call.beta == 0;
  input.precision = job.precision;
  input.kernels = device.kernels();
  input.pinned_bytes = pinned_bytes_;
  input.profile = &profile_;
  GEMMHOIST_RETURN_IF_FAILED(classify(job, device, input.a_pinned, input.b_pinned));
  GEMMHOIST_RETURN_IF_FAILED(make_ready(input, device));

  Ledger* ledger = take_ledger();
  if (ledger == nullptr) return Status(StatusCode::out_of_memory, "ledger");
  const bool traced = observe::trace_enabled();
  Context context{
      device,
      queue_,
      job,
      *plan_,
      arena_,
      pinned_,
      pinned_ + plan_->h2d_slots * (plan_->chunk_bytes / static_cast<std::int64_t>(sizeof(float))),
      input.a_pinned,
      input.b_pinned,
      traced || observe::call_log_enabled(),
      traced};
  Execution execution(context, few_cpus(), pool_.size() == 0);
  Status status;
  try {
    status = execution.run(*ledger);
  } catch (...) {
    // Before the job has its ledger it is still ours; afterwards the job gives it back.
    if (job.ledger.load(std::memory_order_relaxed) == nullptr) give_back(*ledger);
    throw;
  }
  job.uploaded_bytes = execution.uploaded_bytes();
  job.downloaded_bytes = execution.downloaded_bytes();
  return status;
}

Status Engine::refresh_budget(device::Device& device) noexcept {
  std::size_t free_bytes = 0;
  GEMMHOIST_RETURN_IF_FAILED(device.free_memory(free_bytes));
  const std::int64_t available = static_cast<std::int64_t>(free_bytes) + arena_.held_bytes();
  budget_ = available - reserve_of(available) - kSlackBytes;
  if (options_.device_bytes > 0) budget_ = std::min(budget_, options_.device_bytes);
  budget_ = std::max<std::int64_t>(budget_, 0);
  budget_reduced_ = false;
  return {};
}

Status Engine::plan_for(const plan::PlanInput& input) {
  Planned* oldest = plans_;
  for (Planned& planned : plans_) {
    if (planned.used != 0 && same(input, planned.input)) {
      planned.used = ++plan_uses_;
      plan_ = &planned.plan;
      return {};
    }
    if (planned.used < oldest->used) oldest = &planned;
  }
  oldest->used = 0;
  plan_ = nullptr;
  plan::Plan& plan = oldest->plan;
  switch (plan::make_plan(input, plan)) {
    case plan::PlanError::none:
      break;
    case plan::PlanError::no_kernel:
      return Status(StatusCode::unsupported, "no kernel");
    case plan::PlanError::too_little_memory:
      return Status(StatusCode::out_of_memory, "plan");
  }
  if (plan.h2d_slots < 1 || plan.d2h_slots < 1 || plan.h2d_slots > kMostSlots ||
      plan.d2h_slots > kMostSlots || (plan.h2d_slots + plan.d2h_slots) * plan.chunk_bytes > pinned_bytes_) {
    return Status(StatusCode::unsupported, "plan does not fit the pinned arena");
  }
  oldest->input = input;
  oldest->used = ++plan_uses_;
  plan_ = &plan;
  return {};
}

// A plan, and the device memory that it wants. Others may have taken memory since the last call: what is free
// is asked again whenever the arena has to grow or the last answer was a poor one, and each refusal halves
// the next request.
Status Engine::make_ready(const plan::PlanInput& wanted, device::Device& device) {
  constexpr int kAttempts = 4;
  plan::PlanInput input = wanted;
  if (budget_reduced_) GEMMHOIST_RETURN_IF_FAILED(refresh_budget(device));
  Status status;
  bool fresh = false;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    input.device_bytes = budget_;
    status = plan_for(input);
    const bool constrained = !status.ok() || plan_->blocks.size() > 1;
    const bool fits = status.ok() && arena_.holds(arena_sizes(input, *plan_));
    if (!fresh && (constrained || !fits)) {
      fresh = true;
      const std::int64_t before = budget_;
      GEMMHOIST_RETURN_IF_FAILED(refresh_budget(device));
      if (budget_ != before) {
        --attempt;
        continue;
      }
    }
    if (!status.ok()) return status;
    if (fits) return {};
    status = arena_.reserve(device, arena_sizes(input, *plan_), budget_ + kSlackBytes);
    if (!out_of_memory(status)) return status;
    GEMMHOIST_RETURN_IF_FAILED(arena_.release_all(device));
    GEMMHOIST_RETURN_IF_FAILED(refresh_budget(device));
    budget_ = std::min(budget_, plan_->device_bytes / 2);
    budget_reduced_ = true;
  }
  return status;
}

// --- the public face ---

Status make_engine(device::Device& device, const EngineOptions& options, Engine*& engine) noexcept {
  engine = new (std::nothrow) Engine(options);
  if (engine == nullptr) return Status(StatusCode::out_of_memory, "host memory");
  Status status = engine->open(device);
  if (!status.ok()) {
    engine->close(status.code() == StatusCode::device_lost ? nullptr : &device);
    delete engine;
    engine = nullptr;
  }
  return status;
}

void set_profile(Engine& engine, const MachineProfile& profile) noexcept {
  engine.set_profile(profile);
}

void close_engine(Engine* engine, device::Device* device) noexcept {
  if (engine == nullptr) return;
  engine->close(device);
  delete engine;
}

}  // namespace gemmhoist::pipeline
