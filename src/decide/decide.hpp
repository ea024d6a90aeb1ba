// Decision: CPU or GPU for one call, from a cost model; and when the GPU has earned its start.
// Pure: values in, values out; no clock, no lock, no device.
#pragma once

#include <atomic>
#include <cstdint>

#include "config/options.hpp"
#include "core/gemm_call.hpp"
#include "core/machine_profile.hpp"

namespace gemmhoist::decide {

enum class Route : std::uint8_t { cpu, gpu };

enum class GpuState : std::uint8_t {
  cold,      // not wanted yet
  starting,  // context, module, arena on their way, in the background
  up,
  absent,   // no device, no driver, or driver too old: for good
  lost,     // worked once and failed beyond use, or this is a forked child: for good
  backoff,  // out of memory or a transient failure: again after a while
};

enum class Reason : std::uint8_t {
  forced_cpu,  // GEMMHOIST_ROUTE=cpu or the thread's mode
  forced_gpu,
  too_small,   // below any size that pays
  cpu_faster,  // predicted
  gpu_faster,
  gpu_cold,  // the GPU would be faster but has not earned its start yet
  gpu_starting,
  worth_waiting,  // starts (or awaits) the GPU: this call alone outlasts the start-up
  gpu_absent,
  gpu_lost,
  gpu_backoff,
  gpu_busy,  // queue of earlier calls makes the CPU the faster one
  in_fork_child,
  cpu_looked_at,  // the GPU would do; the CPU is measured again, now and then
  count_
};
const char* to_string(Reason reason) noexcept;
const char* to_string(Route route) noexcept;

// The only test that the smallest calls meet: below this many flops no decision is made at all.
inline constexpr double kSmallestFlops = 4e6;  // 0.1 ms at 40 GFLOP/s: less than any GPU round trip pays back

// What calls took on the GPU over what was estimated, by size. The estimate knows the link and the kernels;
// it does not know what the host does meanwhile: a BLAS whose threads spin for a while after each call, say,
// doubles the time of a small product and is not felt by a large one. Lock-free; any thread.
class GpuTimeLearner {
 public:
  void learn(double estimated_s, double measured_s) noexcept;
  // What the estimate has to be multiplied by; from the nearest size that was learnt, 1 where nothing was.
  double correction(double estimated_s) const noexcept;
  // A call stayed on the CPU only because of the correction. Drawn a hundredth towards 1, so that what drove
  // the GPU's times up is not believed for ever: after a hundred calls or so, one tries again.
  void forgive(double estimated_s) noexcept;

 private:
  static constexpr int kOctaves = 20;  // from 16 us up; the last holds all that is longer
  static int octave_of(double seconds) noexcept;
  std::atomic<float> ratio_[kOctaves] = {};  // 0: nothing yet
};

struct DecisionInput {
  std::int64_t m = 0, n = 0, k = 0;
  Transpose trans_a = Transpose::no, trans_b = Transpose::no;
  bool beta_zero = true;
  Precision precision = Precision::fp32;
  std::int64_t device_bytes = 0;                       // what a plan may use there; 0: not known, enough
  std::int64_t pinned_bytes = std::int64_t{64} << 20;  // of the pinned arena
  config::RouteMode mode = config::RouteMode::automatic;
  GpuState gpu = GpuState::cold;
  double cpu_s = 0;              // predicted, by CpuRateLearner::predict or predict_cpu_seconds
  double queue_s = 0;            // predicted time of the calls already on the device
  double start_remaining_s = 0;  // while starting; profile.start_s when cold
  double earned_s = 0;           // what the GPU would have saved so far
  const GpuTimeLearner* gpu_times =
      nullptr;  // corrects the estimate by what recent calls took; null: as it is
};

struct Decision {
  Route route = Route::cpu;
  Reason reason = Reason::too_small;
  bool start_gpu = false;  // begin the start-up (in the background unless route is gpu)
  double cpu_s = 0;        // predictions; 0: none made
  double gpu_s = 0;
  double gpu_estimate_s = 0;   // gpu_s before its correction: what GpuTimeLearner learns by
  bool by_correction = false;  // on the CPU only because of the correction
};

Decision decide(const DecisionInput& input, const MachineProfile& profile) noexcept;

// Predicted seconds on the CPU; an optimistic prior where nothing near has been learnt.
double predict_cpu_seconds(std::int64_t m, std::int64_t n, std::int64_t k,
                           const MachineProfile& profile) noexcept;

// CPU rates learnt from calls that the CPU served. Lock-free; any thread.
//
// A bucket keeps the best of the recent calls: a faster one is believed at once, a slower one pulls the rate
// down by a tenth at most, so that a call that paid for something else (the first call of a process makes
// OpenBLAS' threads; a page fault storm; a busy moment) does not send work to the GPU. A bucket counts from
// its second call on.
class CpuRateLearner {
 public:
  void learn(std::int64_t m, std::int64_t n, std::int64_t k, double seconds) noexcept;
  // A size that the GPU serves teaches nothing of the CPU, and what was learnt on a busy day would last. So a
  // hundredth of the time on the GPU is set aside, by size, and when it has come to what a product costs more
  // on the CPU, one goes there. True for that one. Where the CPU is thought so far behind that no busy day
  // explains it, none does: the caller would wait long for an answer that is known.
  bool look_again(std::int64_t m, std::int64_t n, std::int64_t k, double cpu_s, double gpu_s) noexcept;
  // What that one took. It speaks for the CPU or not at all, since the threads of a BLAS that has not been
  // called for a while take their time; and where it took longer than was thought, the next one has to wait
  // for that.
  void learn_looking_again(std::int64_t m, std::int64_t n, std::int64_t k, double expected_s,
                           double seconds) noexcept;
  void snapshot(CpuRates& rates) const noexcept;
  void preload(const CpuRates& rates) noexcept;  // from a saved profile; what is learnt already stays
  // As decide::predict_cpu_seconds, without a snapshot.
  double predict(std::int64_t m, std::int64_t n, std::int64_t k,
                 const MachineProfile& profile) const noexcept;

 private:
  // 0: nothing yet; negative: one call, not yet confirmed.
  std::atomic<float> flops_per_s_[CpuRates::kBuckets][CpuRates::kThinness] = {};
  // Seconds set aside to look again; negative: owed.
  std::atomic<float> aside_s_[CpuRates::kBuckets][CpuRates::kThinness] = {};
};

}  // namespace gemmhoist::decide
