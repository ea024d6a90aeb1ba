#include "dispatch/dispatch.hpp"

#include <algorithm>

#include "config/options.hpp"
#include "core/checked.hpp"
#include "decide/decide.hpp"
#include "dispatch/gpu.hpp"
#include "dispatch/profile_store.hpp"
#include "gemmhoist/gemmhoist.h"
#include "observe/counters.hpp"
#include "observe/decision_log.hpp"
#include "observe/trace.hpp"
#include "os/errno_guard.hpp"
#include "os/os.hpp"
#include "pipeline/pipeline.hpp"

namespace gemmhoist::dispatch {
namespace {

using config::RouteMode;
using decide::Decision;
using decide::GpuState;
using decide::Reason;
using decide::Route;
using observe::Counter;

// GEMMHOIST_MODE_* of the calling thread. One byte, no constructor: the host's threads pay for it.
constinit thread_local signed char t_mode = GEMMHOIST_MODE_DEFAULT;

RouteMode mode_of_this_thread() noexcept {
  switch (t_mode) {
    case GEMMHOIST_MODE_AUTO:
      return RouteMode::automatic;
    case GEMMHOIST_MODE_CPU:
      return RouteMode::cpu;
    case GEMMHOIST_MODE_GPU:
      return RouteMode::gpu;
    default:
      return config::options().route;
  }
}

// --- pass 1: calls on which no thought is worth spending ---

static_assert(kSmallestVolume == static_cast<std::int64_t>(decide::kSmallestFlops / 2));

bool is_plainly_cpu(RouteMode mode, const GemmCall& call) noexcept {
  return mode == RouteMode::cpu || (mode == RouteMode::automatic && is_too_small(call.m, call.n, call.k));
}

// Settled at most once by what does not change, the options; and for good by a thread that may want the GPU
// for every product.
void settle_small_products() noexcept {
  SmallProducts known = SmallProducts::not_known;
  const bool unexamined = config::options().route != RouteMode::gpu && !observe::call_log_enabled();
  (void)detail::small_products.compare_exchange_strong(
      known, unexamined ? SmallProducts::unexamined : SmallProducts::examined, std::memory_order_relaxed);
}

bool for_cpu_unexamined(RouteMode mode, CpuTicket& ticket) noexcept {
  observe::add(Counter::calls_cpu);
  if (detail::small_products.load(std::memory_order_relaxed) == SmallProducts::not_known)
    settle_small_products();
  if (observe::call_log_enabled()) {
    ticket.timed = true;
    ticket.reason = decide::to_string(mode == RouteMode::cpu ? Reason::forced_cpu : Reason::too_small);
    ticket.begin_ns = os::monotonic_ns();
  }
  return false;
}

// --- pass 2: the decision ---

// All of our own arithmetic on a caller's thread happens in the default floating-point environment: the host
// may have traps enabled, and its flags are its own. The provider, in pass 3 and behind us, sees the host's.
// Out of line, as the log below: a caller may have little stack, and the provider comes on top of this frame.
[[gnu::noinline]] Decision decide_route(RouteMode mode, const GemmCall& call) noexcept {
  const os::DefaultFloatingPoint environment;
  const MachineProfile& profile = machine_profile();
  decide::DecisionInput input;
  input.m = call.m;
  input.n = call.n;
  input.k = call.k;
  input.trans_a = call.trans_a;
  input.trans_b = call.trans_b;
  input.beta_zero = call.beta == 0;
  input.precision = config::options().precision;
  input.mode = mode;
  input.cpu_s = cpu_rates().predict(call.m, call.n, call.k, profile);
  input.gpu = gpu_state();
  // Whoever asks for the GPU by name wants it tried even while we would rather let it rest.
  if (mode == RouteMode::gpu && input.gpu == GpuState::backoff) input.gpu = GpuState::up;
  // Also where the fork went past our hook (a bare clone): the context is the parent's.
  // Cold counts: a start that failed may have initialised the driver all the same.
  const bool forked = input.gpu != GpuState::absent && os::forked_since_armed();
  if (forked) input.gpu = GpuState::lost;
  input.queue_s = gpu_queue_seconds();
  input.start_remaining_s = gpu_start_remaining_seconds();
  input.earned_s = gpu_earned_seconds();
  input.gpu_times = &gpu_times();
  input.device_bytes = config::options().device_mib << 20;
  input.pinned_bytes = config::options().pinned_mib << 20;
  Decision decision = decide::decide(input, profile);
  if (decision.by_correction) gpu_times().forgive(decision.gpu_estimate_s);
  if (forked && decision.reason == Reason::gpu_lost) decision.reason = Reason::in_fork_child;
  if (decision.reason == Reason::gpu_faster && look_at_cpu_again(call, decision.cpu_s, decision.gpu_s)) {
    decision.route = Route::cpu;
    decision.reason = Reason::cpu_looked_at;
  }
  return decision;
}

bool for_cpu(const Decision& decision, CpuTicket& ticket) noexcept {
  observe::add(Counter::calls_cpu);
  ticket.timed = true;
  ticket.looked_again = decision.reason == Reason::cpu_looked_at;
  ticket.cpu_s = decision.cpu_s;
  ticket.gpu_s = decision.gpu_s;
  ticket.reason = decide::to_string(decision.reason);
  ticket.begin_ns = os::monotonic_ns();
  return false;
}

// A call counts towards the start by no more than twice its prediction: the prior is about as much too
// optimistic on common machines, and from the second call of a size on the prediction is a measured one.
constexpr double kMostBelieved = 2;

// --- pass 3: the GPU, and whatever it leaves undone ---

struct Rescue {
  const fallback::Provider* provider;
  const GemmCall* call;
  std::int64_t tiles = 0;
};

// One rectangle of C that is still the caller's, by the CPU. beta is applied here, and only here, to it.
void finish_region(const pipeline::Region& region, void* context) {
  auto& rescue = *static_cast<Rescue*>(context);
  GemmCall part = *rescue.call;
  const std::int64_t i = region.rows.begin;
  const std::int64_t j = region.cols.begin;
  part.m = region.rows.extent;
  part.n = region.cols.extent;
  part.a += part.trans_a == Transpose::no ? i : i * part.lda;
  part.b += part.trans_b == Transpose::no ? j * part.ldb : j;
  part.c += i + j * part.ldc;
  fallback::multiply(*rescue.provider, part);
  ++rescue.tiles;
}

struct GpuRun {
  const char* route = "gpu";
  const char* kernel = "";
  pipeline::CallTimes times;
  pipeline::Leftover leftover;
};

pipeline::CallTimes times_of(const pipeline::Job& job) noexcept {
  const os::DefaultFloatingPoint environment;
  return pipeline::times(job);
}

// False: nothing was handed over, C is untouched.
bool run_and_complete(const fallback::Provider& provider, const GemmCall& call, const Decision& decision,
                      GpuRun& run) noexcept {
  pipeline::Job* job = pipeline::take_job(call, config::options().precision);
  if (job == nullptr) return false;
  const GpuAnswer answer = run_on_gpu(*job, decision);
  if (answer.tried) {
    observe::add(Counter::tiles_gpu, static_cast<std::uint64_t>(pipeline::tiles_written(*job)));
    run.times = times_of(*job);
    run.kernel = pipeline::kernel_name(*job);
    run.leftover = pipeline::leftover(*job);
    observe::add(Counter::range_tiles, static_cast<std::uint64_t>(run.leftover.of));
    observe::add(Counter::range_tiles_fp32, static_cast<std::uint64_t>(run.leftover.tiles));
    if (answer.outcome == pipeline::Outcome::done) {
      observe::add(Counter::calls_gpu);
    } else {
      Rescue rescue{&provider, &call};
      pipeline::for_each_region_left(*job, finish_region, &rescue);
      observe::add(Counter::calls_rescued);
      observe::add(Counter::tiles_rescued, static_cast<std::uint64_t>(rescue.tiles));
      run.route = "gpu+cpu";
    }
  }
  pipeline::let_go(*job);
  return answer.tried;
}

[[gnu::noinline]] void log_gpu_call(fallback::Spelling spelling, const GemmCall& call,
                                    const Decision& decision, const GpuRun& run,
                                    std::int64_t begin_ns) noexcept {
  if (!observe::call_log_enabled()) return;
  const os::DefaultFloatingPoint environment;
  observe::CallRecord record{};
  record.spelling = fallback::spelling_name(spelling);
  record.call = call;
  record.route = run.route;
  record.reason = decide::to_string(decision.reason);
  record.kernel = run.kernel;
  record.predicted_cpu_s = decision.cpu_s;
  record.predicted_gpu_s = decision.gpu_s;
  record.measured_s = 1e-9 * static_cast<double>(os::monotonic_ns() - begin_ns);
  record.submit_s = run.times.submit_s;
  record.kernel_s = run.times.kernel_s;
  record.range_tiles = run.leftover.of;
  record.range_tiles_fp32 = run.leftover.tiles;
  observe::log_call(record);
}

// A start takes 0.3 s on a quiet machine and several where many processes start at once or the driver has to
// be woken; past this, waiting for it is no longer what anybody wants.
constexpr std::int64_t kStartDeadlineNs = 20'000'000'000;

// Who asks for the GPU by name waits for its start; any other call no longer than the CPU would have taken: a
// start that hangs doubles that call's time at worst.
std::int64_t patience_for_start(const Decision& decision) noexcept {
  if (decision.reason == Reason::forced_gpu) return kStartDeadlineNs;
  const os::DefaultFloatingPoint environment;
  return static_cast<std::int64_t>(std::min(1e9 * decision.cpu_s, static_cast<double>(kStartDeadlineNs)));
}

// Why a call that was meant for the GPU goes to the CPU.
Reason reason_not_on_gpu() noexcept {
  switch (gpu_state()) {
    case GpuState::starting:
      return Reason::gpu_starting;
    case GpuState::absent:
      return Reason::gpu_absent;
    case GpuState::lost:
      return Reason::gpu_lost;
    case GpuState::cold:  // its start failed, long enough ago for another
    case GpuState::backoff:
      return Reason::gpu_backoff;
    case GpuState::up:
      break;
  }
  return Reason::gpu_busy;
}

// The passes that only larger calls meet; kept out of line so that small ones do not pay for its frame.
[[gnu::noinline]] bool serve_examined(RouteMode mode, fallback::Spelling spelling,
                                      const fallback::Provider& provider, const GemmCall& call,
                                      CpuTicket& ticket) noexcept {
  const os::ErrnoGuard kept_errno;
  const os::NoCancellation no_cancellation;
  Decision decision = decide_route(mode, call);
  if (decision.start_gpu) start_gpu();
  if (decision.route == Route::cpu) return for_cpu(decision, ticket);

  const std::int64_t begin_ns = os::monotonic_ns();
  GpuRun run;
  if ((gpu_state() == GpuState::starting && !await_gpu(patience_for_start(decision))) ||
      !run_and_complete(provider, call, decision, run)) {
    decision.reason = reason_not_on_gpu();
    return for_cpu(decision, ticket);
  }
  log_gpu_call(spelling, call, decision, run, begin_ns);
  return true;
}

}  // namespace

constinit std::atomic<SmallProducts> detail::small_products{SmallProducts::not_known};

bool serve(fallback::Spelling spelling, const fallback::Provider& provider, const GemmCall& call,
           CpuTicket& ticket) noexcept {
  const RouteMode mode = mode_of_this_thread();
  if (is_plainly_cpu(mode, call)) return for_cpu_unexamined(mode, ticket);
  return serve_examined(mode, spelling, provider, call, ticket);
}

void cpu_call_done(fallback::Spelling spelling, const GemmCall& call, const CpuTicket& ticket) noexcept {
  const os::ErrnoGuard kept_errno;
  const os::DefaultFloatingPoint environment;
  const double seconds = 1e-9 * static_cast<double>(os::monotonic_ns() - ticket.begin_ns);
  if (ticket.looked_again) {
    learn_looking_again(call, ticket.cpu_s, seconds);
  } else if (ticket.cpu_s > 0) {
    learn_cpu_rate(call, seconds);
    // What held the call up beyond that (a debugger, the making of the BLAS' threads) no GPU would have
    // saved.
    const double believed_s = std::min(seconds, kMostBelieved * ticket.cpu_s);
    if (ticket.gpu_s > 0 && believed_s > ticket.gpu_s) gpu_add_earned(believed_s - ticket.gpu_s);
  }
  if (!observe::call_log_enabled()) return;
  observe::CallRecord record{};
  record.spelling = fallback::spelling_name(spelling);
  record.call = call;
  record.route = "cpu";
  record.reason = ticket.reason;
  record.kernel = "";
  record.predicted_cpu_s = ticket.cpu_s;
  record.predicted_gpu_s = ticket.gpu_s;
  record.measured_s = seconds;
  observe::log_call(record);
}

bool set_thread_mode(int mode) noexcept {
  if (mode < GEMMHOIST_MODE_DEFAULT || mode > GEMMHOIST_MODE_GPU) return false;
  t_mode = static_cast<signed char>(mode);
  if (mode == GEMMHOIST_MODE_GPU)
    detail::small_products.store(SmallProducts::examined, std::memory_order_relaxed);
  return true;
}

const char* gpu_state_name() noexcept {
  switch (gpu_state()) {
    case GpuState::cold:
      return "cold";
    case GpuState::starting:
      return "starting";
    case GpuState::up:
      return "up";
    case GpuState::absent:
      return "absent";
    case GpuState::lost:
      return "lost";
    case GpuState::backoff:
      return "backoff";
  }
  return "?";
}

void on_load() noexcept {
  const os::ErrnoGuard kept_errno;
  os::remember_affinity();
  (void)config::options();
}

void on_fork_child() noexcept {
  const os::ErrnoGuard kept_errno;
  gpu_after_fork();
  profile_after_fork();
  observe::reset_after_fork();
}

void on_unload() noexcept {
  const os::ErrnoGuard kept_errno;
  if (os::forked_since_armed())
    observe::reset_after_fork();  // forked past our hook: the trace is the parent's
  if (machine_was_measured() || cpu_rate_was_learnt()) save_profile(machine_profile());
  observe::write_trace();
  observe::write_summary();
}

}  // namespace gemmhoist::dispatch
