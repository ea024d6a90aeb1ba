// Makespan: a discrete-event model of one device and its link, fed step by step in plan order. Internal to
// the layer; its clock is the model's own.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/kernel_descriptor.hpp"
#include "core/machine_profile.hpp"
#include "plan/plan.hpp"
#include "plan/tiling.hpp"

namespace gemmhoist::plan {

inline constexpr int kComputeStreams = 4;  // as many as device::Stream has; a layer above, hence repeated

// At first the host fills all slots that there are, faster than the link empties them, and the device's reads
// have to share the memory with it: 2 MiB then take 67 to 75 instead of 45 us. So much of the host's copying
// time for these slots is lost to the link.
inline constexpr double kFirstFillLoss = 0.4;

// From a launch's dependencies being met to its first blocks running: stream wait, launch, first loads.
inline constexpr double kLaunchSeconds = 4e-6;
// The worker's own time (H200, driver 580): in the driver a copy 1.4 us and its event 0.14, a launch about 3,
// and its walk about 1 us between them.
inline constexpr double kIssueCopySeconds = 2.5e-6;
inline constexpr double kIssueLaunchSeconds = 4.5e-6;
// Of one chunk on its way to the device.
constexpr double issue_seconds(bool turned) noexcept {
  return kIssueCopySeconds + (turned ? kIssueLaunchSeconds : 0.0);
}

// From the last byte of a panel to its image being done: a launch that reads the panel and writes the image
// (H200: 3.4 to 4 TB/s). 0 without images.
double prepare_seconds(const PlanInput& input, std::int32_t prepare, double panel_bytes) noexcept;

// Behind each product of images that may leave tiles out: a launch that finds nothing to do.
inline constexpr double kLeftoverSeconds = 5e-6;

// From the last chunk's landing to its transpose being done: an event between streams, and one launch over at
// most 4 MiB.
inline constexpr double kTurnSeconds = 8e-6;

// Seconds that one tile takes an SM which it has for itself, over `depth`.
double tile_seconds(const KernelDescriptor& kernel, std::int64_t depth,
                    const MachineProfile& profile) noexcept;
std::int64_t tile_count(const KernelDescriptor& kernel, std::int64_t rows, std::int64_t cols) noexcept;
std::int32_t model_sms(const MachineProfile& profile) noexcept;

// One launch as the SMs see it: each of `jobs` keeps one SM for `seconds`.
struct Work {
  std::int64_t jobs = 0;
  double seconds = 0;
  double busy_seconds() const noexcept { return static_cast<double>(jobs) * seconds; }  // of SMs
};
Work work_of(const KernelDescriptor& kernel, std::int64_t rows, std::int64_t cols, std::int64_t depth,
             const MachineProfile& profile) noexcept;

double host_out_seconds_per_byte(const PlanInput& input) noexcept;

class Timeline {
 public:
  // `images`: prepare and leftover say what follows each upload and each compute.
  Timeline(const PlanInput& input, const Staging& staging, double total_bytes, const Images& images = {});

  // When a step has finished on the device: a time, or (write_back) a promise of one, since how early results
  // come home depends on what else the host copies until then. time() redeems it.
  using End = double;
  End upload(double bytes, bool staged, bool turned, double ready);
  End compute(const Work& work, int stream, double ready);
  End write_back(double bytes, double ready);
  double time(End end);
  // As compute, but nothing happens.
  double peek(const Work& work, int stream, double ready);
  // Everything at home, host copies included.
  double finish();

 private:
  struct Sms {
    double free_at;
    std::int64_t count;
  };
  struct Outbound {
    double ready, bytes;
  };
  double run(std::vector<Sms>& sms, const Work& work, double ready) const;
  double next_landing() const;
  void bring_home_until(double time);
  void bring_home_one();

  const PlanInput& input_;
  const MachineProfile& profile_;
  const std::int32_t prepare_, leftover_;
  double chunk_bytes_;
  double host_out_s_per_byte_;
  double quantum_bytes_;  // chunks are simulated in groups where there are very many
  std::size_t in_ring_, out_ring_;
  std::vector<double> in_slots_, out_slots_;  // when each slot is free again
  std::size_t in_next_ = 0;
  double issued_ = 0;  // the worker's own clock
  double host_free_ = 0, h2d_free_ = 0, d2h_free_ = 0, home_ = 0;
  std::vector<Outbound> outbound_;  // groups of chunks on their way home, in order
  std::vector<double> landed_;      // when each of the first of them was in pinned memory
  std::array<double, kComputeStreams> stream_free_{};
  std::vector<Sms> sms_, scratch_;  // sorted by free_at
};

// Predicted seconds of a finished plan, fixed costs included: make_plan's predicted_s.
double makespan(const Plan& plan, const PlanInput& input);

}  // namespace gemmhoist::plan
