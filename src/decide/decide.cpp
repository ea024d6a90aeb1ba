#include "decide/decide.hpp"

#include <algorithm>

#include "plan/plan.hpp"

namespace gemmhoist::decide {
namespace {

// The GPU must be predicted this much faster. Its predictions err by some 10 % (the link's rate drifts, the
// host's copying shares memory with the program), the CPU's, being the best of recent calls, by less; 0.85
// keeps a wrong choice within the 5 % that are promised, and gives up only calls that gain little. It is also
// the hysteresis: a rate has to move by more than its noise before a shape changes its route.
constexpr double kFasterMargin = 0.85;

// Waiting for a start-up bets more: start-up times vary by a third and more from run to run (0.29 to 0.5 s
// seen on one machine), and the driver may fail at the end of it.
constexpr double kWaitMargin = 0.7;

// A product this thin in any dimension does at most 2 * 8 / 4 flops a byte of its largest operand. The CPU
// streams that at the rate of its memory; staging streams the same bytes through the same memory and then
// through the link as well. Whatever the CPU's rate was measured at, the GPU cannot gain there.
constexpr std::int64_t kThinnest = 8;

// The device's own kernels are not known here, and need not be while it is cold: the shapes of the usual
// large and small tile stand for them.
constexpr KernelDescriptor kNominalKernels[] = {
    {"large", KernelRole::gemm, Precision::fp32, 0, 128, 256, 32, 3, 256, 0, 1},
    {"small", KernelRole::gemm, Precision::fp32, 0, 64, 64, 16, 3, 64, 0, 4},
    {"bf16x6", KernelRole::gemm_prepared, Precision::bf16x6, 0, 128, 128, 32, 4, 384, 0, 1},
    {"bf16x6", KernelRole::prepare, Precision::bf16x6, 0, 128, 32, 1, 1, 256, 0, 4},
    {"bf16x6", KernelRole::gemm_leftover, Precision::bf16x6, 0, 128, 128, 16, 3, 128, 0, 2},
    {"tf32", KernelRole::gemm_prepared, Precision::tf32, 0, 256, 128, 32, 4, 384, 0, 1},
    {"tf32", KernelRole::prepare, Precision::tf32, 0, 128, 32, 1, 1, 256, 0, 4},
};

double estimate(const DecisionInput& input, const MachineProfile& profile) noexcept {
  plan::PlanInput product;
  product.m = input.m;
  product.n = input.n;
  product.k = input.k;
  product.trans_a = input.trans_a;
  product.trans_b = input.trans_b;
  product.beta_zero = input.beta_zero;
  product.precision = input.precision;
  product.kernels = kNominalKernels;
  product.device_bytes = input.device_bytes > 0 ? input.device_bytes : std::int64_t{1} << 62;
  product.pinned_bytes = input.pinned_bytes;
  product.profile = &profile;
  return plan::estimate_seconds(product);
}

void predict(Decision& made, const DecisionInput& input, const MachineProfile& profile) noexcept {
  made.cpu_s = input.cpu_s;
  made.gpu_estimate_s = estimate(input, profile);
  const double correction = input.gpu_times != nullptr ? input.gpu_times->correction(made.gpu_estimate_s) : 1;
  made.gpu_s = made.gpu_estimate_s * correction;
}

Decision answer(Decision decision, Route route, Reason reason, bool start_gpu = false) noexcept {
  decision.route = route;
  decision.reason = reason;
  decision.start_gpu = start_gpu;
  return decision;
}

// States in which there is no GPU, for either mode.
bool unusable(GpuState state, Reason& reason) noexcept {
  switch (state) {
    case GpuState::absent:
      reason = Reason::gpu_absent;
      return true;
    case GpuState::lost:
      reason = Reason::gpu_lost;
      return true;
    case GpuState::backoff:
      reason = Reason::gpu_backoff;
      return true;
    case GpuState::cold:
    case GpuState::starting:
    case GpuState::up:
      return false;
  }
  return false;
}

// The GPU would be faster were it up. Whether this call waits for it, or only counts towards its start.
Decision decide_cold(const Decision& made, const DecisionInput& input,
                     const MachineProfile& profile) noexcept {
  const double alone = profile.start_s + made.gpu_s + profile.end_s;
  if (alone < kWaitMargin * made.cpu_s) return answer(made, Route::gpu, Reason::worth_waiting, true);
  const bool earned = input.earned_s >= profile.start_s + profile.end_s;
  return answer(made, Route::cpu, Reason::gpu_cold, earned);
}

Decision decide_starting(const Decision& made, const DecisionInput& input) noexcept {
  const double wait = std::max(input.start_remaining_s, 0.0) + input.queue_s + made.gpu_s;
  if (wait < kWaitMargin * made.cpu_s) return answer(made, Route::gpu, Reason::worth_waiting);
  return answer(made, Route::cpu, Reason::gpu_starting);
}

Decision decide_up(const Decision& made, const DecisionInput& input) noexcept {
  if (input.queue_s + made.gpu_s >= kFasterMargin * made.cpu_s)
    return answer(made, Route::cpu, Reason::gpu_busy);
  return answer(made, Route::gpu, Reason::gpu_faster);
}

Decision decide_by_time(const DecisionInput& input, const MachineProfile& profile) noexcept {
  Decision made;
  if (std::min({input.m, input.n, input.k}) <= kThinnest) {
    made.cpu_s = input.cpu_s;
    return answer(made, Route::cpu, Reason::cpu_faster);
  }
  predict(made, input, profile);
  if (!(made.gpu_s < kFasterMargin * made.cpu_s)) {
    made.by_correction = made.gpu_estimate_s < kFasterMargin * made.cpu_s;
    return answer(made, Route::cpu, Reason::cpu_faster);
  }
  if (input.gpu == GpuState::cold) return decide_cold(made, input, profile);
  if (input.gpu == GpuState::starting) return decide_starting(made, input);
  return decide_up(made, input);
}

}  // namespace

Decision decide(const DecisionInput& input, const MachineProfile& profile) noexcept {
  if (input.mode == config::RouteMode::cpu) return answer({}, Route::cpu, Reason::forced_cpu);
  const double flops =
      2.0 * static_cast<double>(input.m) * static_cast<double>(input.n) * static_cast<double>(input.k);
  const bool forced = input.mode == config::RouteMode::gpu;
  if (!forced && flops < kSmallestFlops) return answer({}, Route::cpu, Reason::too_small);
  Reason why;
  if (unusable(input.gpu, why)) return answer({}, Route::cpu, why);
  if (!forced) return decide_by_time(input, profile);
  Decision made;
  predict(made, input, profile);
  return answer(made, Route::gpu, Reason::forced_gpu, input.gpu == GpuState::cold);
}

const char* to_string(Route route) noexcept {
  return route == Route::cpu ? "cpu" : "gpu";
}

const char* to_string(Reason reason) noexcept {
  constexpr const char* kNames[] = {"forced_cpu",    "forced_gpu",   "too_small",    "cpu_faster",
                                    "gpu_faster",    "gpu_cold",     "gpu_starting", "worth_waiting",
                                    "gpu_absent",    "gpu_lost",     "gpu_backoff",  "gpu_busy",
                                    "in_fork_child", "cpu_looked_at"};
  static_assert(sizeof kNames / sizeof *kNames == static_cast<std::size_t>(Reason::count_));
  return reason < Reason::count_ ? kNames[static_cast<int>(reason)] : "?";
}

}  // namespace gemmhoist::decide
