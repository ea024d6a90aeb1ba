// A closed form of make_plan's prediction, for a caller's thread: no allocation, little stack.
#include <algorithm>
#include <cmath>

#include "plan/blocks.hpp"
#include "plan/makespan.hpp"
#include "plan/plan.hpp"
#include "plan/tiling.hpp"

namespace gemmhoist::plan {
namespace {

constexpr double kNever = 1e30;

// Arithmetic alone: the best kernel for all of C at once, waves and partial tiles counted.
double kernel_seconds(const PlanInput& input, const KernelSet& kernels) noexcept {
  double best = 1e300;
  const double sms = model_sms(*input.profile);
  for (int i = 0; i < kernels.count; ++i) {
    const Work work = work_of(input.kernels[kernels.index[i]], input.m, input.n, input.k, *input.profile);
    best = std::min(best, std::max(work.busy_seconds() / sms, work.seconds));
  }
  return best;
}

// What comes after the last upload whatever overlaps before it: a launch, and its smallest tile's depth. Deep
// products are cut into slices of k, the last of which is short.
double last_launch_seconds(const PlanInput& input, const KernelSet& kernels) noexcept {
  const bool deep = input.k >= 2 * std::min(input.m, input.n);
  const std::int64_t depth = deep ? std::max<std::int64_t>(1, input.k / 16) : input.k;
  double best = 1e300;
  for (int i = 0; i < kernels.count; ++i) {
    const KernelDescriptor& kernel = input.kernels[kernels.index[i]];
    best = std::min(best, work_of(kernel, kernel.tile_m, kernel.tile_n, depth, *input.profile).seconds);
  }
  return kLaunchSeconds + best;
}

// When the link has passed the fraction u of the operands, the fraction f of C can be computed. Panels grow
// evenly on both sides until the shorter one is all there; then the longer one streams.
double overlapped(double in_s, double kernel_s, double shorter, double longer) noexcept {
  constexpr int kSamples = 8;
  double end = 0;
  for (int i = 0; i <= kSamples; ++i) {
    const double extent = longer * i / kSamples;
    const double other = std::min(extent, shorter);
    const double u = (extent + other) / (longer + shorter);
    const double f = extent * other / (longer * shorter);
    end = std::max(end, u * in_s + (1 - f) * kernel_s);
  }
  return end;
}

// With all of it on the device at once.
double whole_seconds(const PlanInput& input, const KernelSet& kernels, const Staging& staging) noexcept {
  const MachineProfile& profile = *input.profile;
  const double m = static_cast<double>(input.m), n = static_cast<double>(input.n);
  const double k = static_cast<double>(input.k);
  const double chunk = static_cast<double>(staging.chunk_bytes);
  const double in_bytes = 4 * k * (m + n), out_bytes = 4 * m * n;
  const double staged_bytes = 4 * k * ((input.a_pinned ? 0 : m) + (input.b_pinned ? 0 : n));
  const double host_in_s = staged_bytes / profile.host_copy_bytes_per_s;
  const double host_out_s = out_bytes * host_out_seconds_per_byte(input);
  const double in_chunks = std::ceil(in_bytes / chunk);
  const double in_s = std::max({in_chunks * profile.h2d.latency_s + in_bytes / profile.h2d.bytes_per_s,
                                in_chunks * issue_seconds(needs_landing(input)), host_in_s});
  const double out_s = std::max(
      std::ceil(out_bytes / chunk) * profile.d2h.latency_s + out_bytes / profile.d2h.bytes_per_s, host_out_s);
  const double kernel_s = kernel_seconds(input, kernels);
  const double longer = std::max(m, n), shorter = std::min(m, n);
  // The ends of the pipeline: the first chunk's copy, and the last piece's way home.
  const double first_copy_s = std::min(staged_bytes, chunk) / profile.host_copy_bytes_per_s;
  const double last_bytes = std::min(out_bytes, std::max(chunk, out_bytes / 8));
  const double last_s = profile.d2h.latency_s + last_bytes / profile.d2h.bytes_per_s +
                        last_bytes * host_out_seconds_per_byte(input);
  const double link_s = std::max(overlapped(in_s, out_s, shorter, longer), in_s + last_s);
  const double arithmetic_s = std::max(overlapped(in_s, kernel_s, shorter, longer), kernel_s + last_s / 2);
  const bool turned = needs_landing(input);
  const double turn_s = (turned ? kTurnSeconds : 0) + (kernels.images() ? kTurnSeconds : 0);
  const double tail_s = first_copy_s + turn_s + last_launch_seconds(input, kernels);
  const double ring_bytes = static_cast<double>(staging.h2d_slots) * chunk;
  const double loss_s = kFirstFillLoss * std::min(staged_bytes, ring_bytes) / profile.host_copy_bytes_per_s;
  const double body = std::max({link_s + tail_s, arithmetic_s + tail_s, host_in_s + host_out_s});
  return body + loss_s;
}

}  // namespace

double estimate_seconds(const PlanInput& input) noexcept {
  Staging staging;
  if (!choose_staging(input, staging)) return kNever;
  double best = kNever;
  KernelSet kernels;
  const auto whole_fits = [&] { return fits(input, kernels, staging, whole_product(input, kernels)); };
  if (choose_kernels(input, KernelChoice::all, kernels) && whole_fits())
    best = whole_seconds(input, kernels, staging);
  bool images_in_blocks = false;
  if (choose_image_kernels(input, kernels)) {
    images_in_blocks = !whole_fits();
    if (!images_in_blocks) best = std::min(best, whole_seconds(input, kernels, staging));
  }
  if (best == kNever || images_in_blocks) {
    Cutting cutting;
    double seconds = 0;
    if (choose_beyond_memory(input, staging, kernels, cutting, seconds)) best = std::min(best, seconds);
  }
  return best == kNever ? kNever : best + input.profile->call_fixed_s;
}

}  // namespace gemmhoist::plan
