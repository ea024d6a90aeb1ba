#include "plan/blocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/checked.hpp"

namespace gemmhoist::plan {
namespace {

// Steps past this make no sensible plan: the plan itself would be tens of megabytes (a step is some 180
// bytes), for a product whose blocks are so small that the link is all there is.
constexpr double kMostSteps = 250000;

bool area_bytes(std::int64_t x, std::int64_t y, std::int64_t& bytes) noexcept {
  return checked_multiply(x, y, bytes) && checked_multiply(bytes, 4, bytes);
}

bool add(std::int64_t x, std::int64_t& sum) noexcept {
  return !__builtin_add_overflow(sum, x, &sum);
}

std::int64_t round_down(double x, std::int64_t multiple) noexcept {
  if (!(x >= static_cast<double>(multiple))) return 0;
  const double bounded = std::min(x, 4e18);
  return static_cast<std::int64_t>(bounded) / multiple * multiple;
}

std::int64_t unit_bytes(const PlanInput& input, const KernelSet& kernels) noexcept {
  return image_facts(input.kernels[static_cast<std::size_t>(kernels.prepare)].precision).unit_bytes();
}

// What an element of a panel takes on the device, in floats: its image, and its share of the unit's range.
double floats_an_element(const PlanInput& input, const KernelSet& kernels) noexcept {
  if (!kernels.images()) return 1;
  constexpr double kUnit = 4.0 * kImageRows * kImageK;
  return 1 + static_cast<double>(unit_bytes(input, kernels) + std::int64_t{sizeof(MagnitudeRange)}) / kUnit;
}

// Edges of blocks and slices are multiples of an image's units, so that those of the parts add up to those of
// the whole.
bool image_footprint(const PlanInput& input, const KernelSet& kernels, const Cutting& cutting,
                     Footprint& result) noexcept {
  result.images = Images{};
  if (!kernels.images()) return true;
  Images& images = result.images;
  images.prepare = kernels.prepare;
  images.leftover = kernels.leftover;
  images.unit_bytes = unit_bytes(input, kernels);
  images.unit_pitch = result.depth_padded / kImageK;
  const std::int64_t whole_unit =
      images.unit_bytes + (images.ranged() ? std::int64_t{sizeof(MagnitudeRange)} : 0);
  std::int64_t bytes = 0;
  if (!checked_multiply(result.lda / kImageRows, images.unit_pitch, images.a_units)) return false;
  if (!checked_multiply(result.ldb / kImageRows, images.unit_pitch, images.b_units)) return false;
  if (!checked_multiply(images.a_units + images.b_units, whole_unit, bytes)) return false;
  for (std::int32_t i = 0; i < cutting.panel_buffers; ++i) {
    if (!add(bytes, result.total_bytes)) return false;
  }
  if (!images.ranged()) return true;
  if (!checked_multiply(divide_up(input.m, kImageRows), divide_up(input.n, kImageRows), bytes)) return false;
  if (!checked_multiply(bytes, divide_up(input.k, cutting.slice_k), images.mark_bytes)) return false;
  return add(images.mark_bytes, result.total_bytes);
}

// The largest nearly square block beside its panels: panels * depth * (m + n) + c * m * n <= elements.
bool largest_block(const PlanInput& input, const KernelSet& kernels, double elements, Cutting& cutting) {
  const double panel = static_cast<double>(cutting.panel_buffers) *
                       static_cast<double>(round_up(cutting.slice_k, kernels.align_k)) *
                       floats_an_element(input, kernels);
  const double c = cutting.c_buffers;
  const double square = (std::sqrt(panel * panel + c * elements) - panel) / c;
  const std::int64_t m_whole = round_up(input.m, kernels.align_m);
  const std::int64_t n_whole = round_up(input.n, kernels.align_n);
  std::int64_t m = std::min(m_whole, round_down(square, kernels.align_m));
  std::int64_t n = std::min(n_whole, round_down(square, kernels.align_n));
  // The extent that fits beside the other side's: panels are padded, C is not.
  const auto rest = [&](std::int64_t other, std::int64_t whole) {
    return (elements - panel * static_cast<double>(other)) /
           (panel + c * static_cast<double>(std::min(other, whole)));
  };
  if (static_cast<double>(m) < square || n == 0) {
    m = std::max(m, kernels.align_m);
    n = std::min(n_whole, round_down(rest(m, round_up(input.m, kPanelAlignment)), kernels.align_n));
  }
  if (n == n_whole) m = std::min(m_whole, round_down(rest(n, input.n), kernels.align_m));
  if (m <= 0 || n <= 0) return false;
  // Blocks of equal size rather than a sliver at the end.
  cutting.block_m = round_up(divide_up(input.m, divide_up(input.m, m)), kernels.align_m);
  cutting.block_n = round_up(divide_up(input.n, divide_up(input.n, n)), kernels.align_n);
  return true;
}

// One block's arithmetic over one slice, waves, partial tiles and the launch counted.
double slice_seconds(const PlanInput& input, const KernelSet& kernels, const Cutting& cutting) noexcept {
  double best = std::numeric_limits<double>::max();
  const std::int64_t rows = std::min(cutting.block_m, input.m), cols = std::min(cutting.block_n, input.n);
  for (int i = 0; i < kernels.count; ++i) {
    const Work work = work_of(input.kernels[kernels.index[i]], rows, cols, cutting.slice_k, *input.profile);
    best = std::min(best, std::max(work.busy_seconds() / model_sms(*input.profile), work.seconds));
  }
  return best + kLaunchSeconds;
}

// Link, arithmetic and write-back overlap; the first slice's upload and the last block's write-back do not.
double block_seconds(const PlanInput& input, const KernelSet& kernels, const Staging& staging,
                     Cutting& cutting) noexcept {
  constexpr double kDeviceMemoryBytes = 1.5e12;  // a second: reading and writing C again in each slice
  const MachineProfile& profile = *input.profile;
  const double m = static_cast<double>(input.m), n = static_cast<double>(input.n);
  const double k = static_cast<double>(input.k), depth = static_cast<double>(cutting.slice_k);
  const double block_m = static_cast<double>(cutting.block_m), block_n = static_cast<double>(cutting.block_n);
  const double row_blocks = std::ceil(m / block_m), col_blocks = std::ceil(n / block_n);
  const double slices = std::ceil(k / depth);
  // While the walk stays in a row (or column) of blocks, the panels that those share stay when a slice is all
  // of k; each set of buffers gets them once.
  const double sets = slices == 1 ? cutting.panel_buffers : 1e300;
  const double rows_first = m * std::min(col_blocks, sets) + n * row_blocks;
  const double cols_first = n * std::min(row_blocks, sets) + m * col_blocks;
  cutting.rows_outer = rows_first <= cols_first;
  const double in_bytes = 4 * k * std::min(rows_first, cols_first), out_bytes = 4 * m * n;
  const double blocks = row_blocks * col_blocks;
  const double chunk = static_cast<double>(staging.chunk_bytes);
  // A panel smaller than a chunk is a chunk all the same.
  const double in_chunk = std::min(chunk, 2 * (block_m + block_n) * depth);
  const double in_rate = 1 / (1 / profile.h2d.bytes_per_s + profile.h2d.latency_s / in_chunk);
  const double out_rate = 1 / (1 / profile.d2h.bytes_per_s + profile.d2h.latency_s / chunk);
  const double arithmetic = blocks * slices * slice_seconds(input, kernels, cutting) +
                            (slices - 1) * 2 * out_bytes / kDeviceMemoryBytes;
  const double copying =
      in_bytes / profile.host_copy_bytes_per_s + out_bytes * host_out_seconds_per_byte(input);
  const double in_s = in_bytes / in_rate, out_s = out_bytes / out_rate;
  const double fill = 4 * depth * (block_m + block_n) / in_rate;
  const double block_out = out_s / blocks;
  // Without a second set of anything, its user waits.
  const double stream = cutting.panel_buffers > 1 ? std::max(in_s, arithmetic) : in_s + arithmetic;
  const double waits = cutting.c_buffers > 1 ? 0 : (blocks - 1) * block_out / 2;
  return std::max({stream + waits, out_s, copying}) + fill + block_out / static_cast<double>(cutting.pieces);
}

void consider(const PlanInput& input, const KernelSet& kernels, const Staging& staging, Cutting candidate,
              Cutting& best, double& best_s) noexcept {
  const double bytes = static_cast<double>(input.device_bytes - staging.landing_bytes);
  if (!largest_block(input, kernels, bytes / 4, candidate)) return;
  // A single block needs one C buffer, and what the rounding of edges added may not fit.
  while (!fits(input, kernels, staging, candidate)) {
    std::int64_t& side = candidate.block_m >= candidate.block_n ? candidate.block_m : candidate.block_n;
    const std::int64_t align = candidate.block_m >= candidate.block_n ? kernels.align_m : kernels.align_n;
    if (side <= align) return;
    side = std::max(align, side / 16 * 15 / align * align);
  }
  if (!candidate.blocked(input)) candidate.c_buffers = 1;
  if (step_bound(candidate, input) > kMostSteps) return;
  const double seconds = block_seconds(input, kernels, staging, candidate);
  if (seconds < best_s) {
    best = candidate;
    best_s = seconds;
  }
}

}  // namespace

bool footprint(const PlanInput& input, const KernelSet& kernels, const Staging& staging,
               const Cutting& cutting, Footprint& result) noexcept {
  const std::int64_t m = std::min(cutting.block_m, input.m), n = std::min(cutting.block_n, input.n);
  result.lda = round_up(m, kernels.align_m);
  result.ldb = round_up(n, kernels.align_n);
  result.ldc = round_up(m, kPanelAlignment);
  result.depth_padded = round_up(std::min(cutting.slice_k, input.k), kernels.align_k);
  // A launch takes 32-bit extents.
  if (result.depth_padded > std::numeric_limits<std::int32_t>::max()) return false;
  if (!area_bytes(result.lda, result.depth_padded, result.a_bytes)) return false;
  if (!area_bytes(result.ldb, result.depth_padded, result.b_bytes)) return false;
  if (!area_bytes(result.ldc, n, result.c_bytes)) return false;
  result.total_bytes = staging.landing_bytes;
  for (std::int32_t i = 0; i < cutting.panel_buffers; ++i) {
    if (!add(result.a_bytes, result.total_bytes) || !add(result.b_bytes, result.total_bytes)) return false;
  }
  for (std::int32_t i = 0; i < cutting.c_buffers; ++i) {
    if (!add(result.c_bytes, result.total_bytes)) return false;
  }
  return image_footprint(input, kernels, cutting, result);
}

bool fits(const PlanInput& input, const KernelSet& kernels, const Staging& staging,
          const Cutting& cutting) noexcept {
  Footprint need;
  return footprint(input, kernels, staging, cutting, need) && need.total_bytes <= input.device_bytes;
}

Cutting whole_product(const PlanInput& input, const KernelSet& kernels) noexcept {
  Cutting cutting;
  cutting.block_m = round_up(input.m, kernels.align_m);
  cutting.block_n = round_up(input.n, kernels.align_n);
  cutting.slice_k = input.k;
  return cutting;
}

namespace {

bool choose_blocks(const PlanInput& input, const KernelSet& kernels, const Staging& staging, Cutting& cutting,
                   double& seconds) noexcept {
  struct Buffers {
    std::int32_t panels, c;
  };
  // The single-buffered layouts overlap nothing: only where memory allows no other.
  constexpr Buffers kLayouts[] = {{2, 2}, {2, 1}, {1, 1}};
  constexpr std::int64_t kDeepest = std::int64_t{1} << 30;
  seconds = std::numeric_limits<double>::max();
  for (const Buffers& layout : kLayouts) {
    Cutting candidate;
    candidate.panel_buffers = layout.panels;
    candidate.c_buffers = layout.c;
    candidate.pieces = 4;
    std::int64_t depth = std::min(input.k, kDeepest / kernels.align_k * kernels.align_k);
    while (true) {
      candidate.slice_k = depth;
      consider(input, kernels, staging, candidate, cutting, seconds);
      if (depth <= kernels.align_k) break;
      depth = round_up(divide_up(depth, 2), kernels.align_k);
      if (depth >= candidate.slice_k) break;
    }
    if (layout.c == 1 && seconds < std::numeric_limits<double>::max()) break;
  }
  return seconds < std::numeric_limits<double>::max();
}

// With images or without, by the closed form; make_plan walks both.
bool choose_faster_blocks(const PlanInput& input, const Staging& staging, KernelSet& kernels,
                          Cutting& cutting, double& seconds) noexcept {
  const bool plain = choose_kernels(input, KernelChoice::all, kernels) &&
                     choose_blocks(input, kernels, staging, cutting, seconds);
  KernelSet with_images;
  Cutting other;
  double other_s = 0;
  if (choose_image_kernels(input, with_images) &&
      choose_blocks(input, with_images, staging, other, other_s) && (!plain || other_s < seconds)) {
    kernels = with_images;
    cutting = other;
    seconds = other_s;
    return true;
  }
  return plain;
}

}  // namespace

bool choose_beyond_memory(const PlanInput& input, Staging& staging, KernelSet& kernels, Cutting& cutting,
                          double& seconds) noexcept {
  constexpr std::int64_t kSmallestChunk = 16 << 10;
  while (true) {
    if (choose_faster_blocks(input, staging, kernels, cutting, seconds)) return true;
    if (choose_kernels(input, KernelChoice::smallest, kernels) &&
        choose_blocks(input, kernels, staging, cutting, seconds))
      return true;
    // The landing ring gives way before the plan does.
    if (staging.landing_bytes == 0 || staging.chunk_bytes <= kSmallestChunk) return false;
    staging.chunk_bytes /= 2;
    staging.piece_bytes = std::min(staging.piece_bytes, staging.chunk_bytes);
    staging.landing_bytes /= 2;
  }
}

}  // namespace gemmhoist::plan
