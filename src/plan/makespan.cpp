#include "plan/makespan.hpp"

#include <algorithm>
#include <cmath>

#include "core/checked.hpp"

namespace gemmhoist::plan {
namespace {

// Fill and drain of one block: the first stages of the pipeline come, the tile of C goes.
constexpr double kTileSeconds = 1.5e-6;
// SMs assumed where the profile does not say (a profile saved before the device was seen).
constexpr std::int32_t kAssumedSms = 80;

// Relative rate of a tile shape: h = tile_m tile_n / (tile_m + tile_n) products a loaded element; the main
// loop loses about 7 / h to loading (H200, n = 8192: 128 x 128 at 0.97 and 64 x 64 at 0.89 of 128 x 256; the
// formula says 0.975 and 0.89). 128 x 256 is the shape that kernel_flops_per_s describes.
double efficiency(const KernelDescriptor& kernel) noexcept {
  if (kernel.role == KernelRole::gemm_prepared) return 1;  // there is one tile of each precision
  const double h = static_cast<double>(kernel.tile_m) * kernel.tile_n / (kernel.tile_m + kernel.tile_n);
  constexpr double kLarge = 128.0 * 256 / (128 + 256);
  return std::min(1.0, (h / (h + 7)) / (kLarge / (kLarge + 7)));
}

}  // namespace

std::int32_t model_sms(const MachineProfile& profile) noexcept {
  return profile.sm_count > 0 ? profile.sm_count : kAssumedSms;
}

double tile_seconds(const KernelDescriptor& kernel, std::int64_t depth,
                    const MachineProfile& profile) noexcept {
  const double flops = 2.0 * kernel.tile_m * kernel.tile_n *
                       static_cast<double>(round_up(depth, std::max(kernel.tile_k, std::int32_t{1})));
  return kTileSeconds +
         flops * model_sms(profile) / (flops_per_s(profile, kernel.precision) * efficiency(kernel));
}

std::int64_t tile_count(const KernelDescriptor& kernel, std::int64_t rows, std::int64_t cols) noexcept {
  return divide_up(rows, kernel.tile_m) * divide_up(cols, kernel.tile_n);
}

// blocks_per_sm blocks share an SM: together they reach its rate. Where two or more fit, a block has so few
// warps that alone it does not hide its latencies (H200: alone a 64 x 64 block takes 1.4 times as long as its
// share of two, a 128 x 128 block 1.8 times).
Work work_of(const KernelDescriptor& kernel, std::int64_t rows, std::int64_t cols, std::int64_t depth,
             const MachineProfile& profile) noexcept {
  const std::int64_t tiles = tile_count(kernel, rows, cols);
  const std::int64_t resident = std::max(kernel.blocks_per_sm, std::int32_t{1});
  const std::int64_t together = std::min(resident, divide_up(tiles, model_sms(profile)));
  constexpr double kAlone = 1.6;
  const double sharing = std::max(static_cast<double>(together), resident > 1 ? kAlone : 1.0);
  return {divide_up(tiles, together), sharing * tile_seconds(kernel, depth, profile)};
}

// The copy home reads C as well where beta is not zero, and the host's copying is bound by memory traffic.
double host_out_seconds_per_byte(const PlanInput& input) noexcept {
  return (input.beta_zero ? 1 : 2) / input.profile->host_copy_bytes_per_s;
}

double prepare_seconds(const PlanInput& input, std::int32_t prepare, double panel_bytes) noexcept {
  if (prepare < 0) return 0;
  constexpr double kDeviceMemoryBytes = 3.4e12;  // a second
  const ImageFacts facts = image_facts(input.kernels[static_cast<std::size_t>(prepare)].precision);
  const double read_and_written = 1 + facts.pieces * facts.element_bytes / 4.0;
  return kTurnSeconds + panel_bytes * read_and_written / kDeviceMemoryBytes;
}

Timeline::Timeline(const PlanInput& input, const Staging& staging, double total_bytes, const Images& images)
    : input_(input),
      profile_(*input.profile),
      prepare_(images.prepare),
      leftover_(images.leftover),
      chunk_bytes_(static_cast<double>(staging.chunk_bytes)),
      host_out_s_per_byte_(host_out_seconds_per_byte(input)) {
  // At most some 256 groups of chunks: the model's own time must not show beside the call's.
  const double groups = std::max(1.0, std::ceil(total_bytes / (256 * chunk_bytes_)));
  quantum_bytes_ = groups * chunk_bytes_;
  const auto ring = [&](std::int32_t slots) {
    return static_cast<std::size_t>(std::max(2.0, static_cast<double>(slots) / groups));
  };
  in_ring_ = ring(staging.h2d_slots);
  out_ring_ = ring(staging.d2h_slots);
  in_slots_.assign(in_ring_, 0);
  out_slots_.assign(out_ring_, 0);
  sms_.push_back({0, model_sms(profile_)});
}

Timeline::End Timeline::upload(double bytes, bool staged, bool turned, double ready) {
  double end = h2d_free_;
  for (double left = bytes; left > 0; left -= quantum_bytes_) {
    const double part = std::min(left, quantum_bytes_);
    double here = ready;
    double& slot = in_slots_[in_next_ % in_ring_];
    if (staged) {
      bring_home_until(std::max(host_free_, slot));
      const double start = std::max(host_free_, slot);
      host_free_ = start + part / profile_.host_copy_bytes_per_s;
      here = std::max(here, host_free_);
    }
    const double chunks = std::ceil(part / chunk_bytes_);
    // Issued as soon as it is copied; what it waits for on the device does not hold up the worker.
    issued_ = std::max(issued_, staged ? host_free_ : 0.0) + chunks * issue_seconds(turned);
    here = std::max(here, issued_);
    end = std::max(h2d_free_, here) + chunks * profile_.h2d.latency_s + part / profile_.h2d.bytes_per_s;
    h2d_free_ = end;
    if (staged) {
      if (in_next_ < in_ring_) end += kFirstFillLoss * part / profile_.host_copy_bytes_per_s;
      h2d_free_ = slot = end;
      ++in_next_;
    }
  }
  if (prepare_ >= 0) issued_ += kIssueLaunchSeconds;
  return end + (turned ? kTurnSeconds : 0.0) + prepare_seconds(input_, prepare_, bytes);
}

Timeline::End Timeline::write_back(double bytes, double ready) {
  issued_ += std::ceil(bytes / chunk_bytes_) * kIssueCopySeconds;
  for (double left = bytes; left > 0; left -= quantum_bytes_)
    outbound_.push_back({ready, std::min(left, quantum_bytes_)});
  return -static_cast<double>(outbound_.size());
}

double Timeline::time(End end) {
  if (end >= 0) return end;
  const auto count = static_cast<std::size_t>(-end);
  while (landed_.size() < count) bring_home_one();
  return landed_[count - 1];
}

double Timeline::next_landing() const {
  const Outbound& next = outbound_[landed_.size()];
  const double start = std::max({d2h_free_, next.ready, out_slots_[landed_.size() % out_ring_]});
  return start + std::ceil(next.bytes / chunk_bytes_) * profile_.d2h.latency_s +
         next.bytes / profile_.d2h.bytes_per_s;
}

void Timeline::bring_home_one() {
  const Outbound& next = outbound_[landed_.size()];
  d2h_free_ = next_landing();
  host_free_ = std::max(host_free_, d2h_free_) + next.bytes * host_out_s_per_byte_;
  home_ = std::max(home_, host_free_);
  out_slots_[landed_.size() % out_ring_] = host_free_;
  landed_.push_back(d2h_free_);
}

void Timeline::bring_home_until(double time) {
  while (landed_.size() < outbound_.size() && next_landing() <= time) bring_home_one();
}

double Timeline::finish() {
  while (landed_.size() < outbound_.size()) bring_home_one();
  return home_;
}

// List scheduling: the SMs that are free first take the jobs.
double Timeline::run(std::vector<Sms>& sms, const Work& work, double ready) const {
  std::int64_t jobs = work.jobs;
  const std::int64_t all = model_sms(profile_);
  // Many whole waves are passed at once.
  if (const std::int64_t waves = jobs / all - 1; waves > 1) {
    for (Sms& group : sms)
      group.free_at = std::max(group.free_at, ready) + static_cast<double>(waves) * work.seconds;
    jobs -= waves * all;
  }
  double end = ready;
  while (jobs > 0) {
    Sms group = sms.front();
    sms.erase(sms.begin());
    const std::int64_t taken = std::min(jobs, group.count);
    const double done = std::max(group.free_at, ready) + work.seconds;
    jobs -= taken;
    end = std::max(end, done);
    if (taken < group.count) sms.insert(sms.begin(), {group.free_at, group.count - taken});
    const auto place = std::upper_bound(sms.begin(), sms.end(), done,
                                        [](double time, const Sms& other) { return time < other.free_at; });
    if (place != sms.begin() && std::prev(place)->free_at == done) {
      std::prev(place)->count += taken;
    } else {
      sms.insert(place, {done, taken});
    }
  }
  return end;
}

Timeline::End Timeline::compute(const Work& work, int stream, double ready) {
  double& stream_free = stream_free_[stream % kComputeStreams];
  issued_ += kIssueLaunchSeconds;
  stream_free = run(sms_, work, std::max({ready, stream_free, issued_}) + kLaunchSeconds);
  if (leftover_ >= 0) {
    issued_ += kIssueLaunchSeconds;
    stream_free += kLeftoverSeconds;
  }
  return stream_free;
}

double Timeline::peek(const Work& work, int stream, double ready) {
  scratch_ = sms_;
  const double begin = std::max({ready, stream_free_[stream % kComputeStreams], issued_});
  return run(scratch_, work, begin + kLaunchSeconds);
}

double makespan(const Plan& plan, const PlanInput& input) {
  Staging staging;
  staging.chunk_bytes = plan.chunk_bytes;
  staging.h2d_slots = plan.h2d_slots;
  staging.d2h_slots = plan.d2h_slots;
  const auto bytes_of = [](const Step& step) {
    const double rows = static_cast<double>(step.rows.extent), cols = static_cast<double>(step.cols.extent);
    if (step.kind == StepKind::write_back) return 4 * rows * cols;
    return 4 * (step.operand == Operand::a ? rows : cols) * static_cast<double>(step.depth.extent);
  };
  double total = 0;
  for (const Step& step : plan.steps) total += step.kind == StepKind::compute ? 0 : bytes_of(step);
  Timeline timeline(input, staging, total, plan.images);
  std::vector<double> ends;
  ends.reserve(plan.steps.size());
  for (const Step& step : plan.steps) {
    double ready = 0;
    for (const std::int32_t before : step.after) ready = std::max(ready, timeline.time(ends[before]));
    if (step.kind == StepKind::upload) {
      const bool pinned = step.operand == Operand::a ? input.a_pinned : input.b_pinned;
      ends.push_back(
          timeline.upload(bytes_of(step), !pinned, lands_k_contiguous(step.operand, input), ready));
    } else if (step.kind == StepKind::compute) {
      const Work work = work_of(input.kernels[step.kernel], step.rows.extent, step.cols.extent,
                                step.depth.extent, *input.profile);
      ends.push_back(timeline.compute(work, step.stream, ready));
    } else {
      ends.push_back(timeline.write_back(bytes_of(step), ready));
    }
  }
  return timeline.finish() + input.profile->call_fixed_s;
}

}  // namespace gemmhoist::plan
