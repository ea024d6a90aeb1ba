#include "plan/tiling.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/checked.hpp"
#include "core/find_kernel.hpp"
#include "plan/makespan.hpp"

namespace gemmhoist::plan {
namespace {

// Smaller tiles are the plain reference kernel's: right, and never worth choosing where another exists.
constexpr std::int64_t kSmallestTile = 32 * 64;

std::int64_t tile_area(const KernelDescriptor& kernel) noexcept {
  return static_cast<std::int64_t>(kernel.tile_m) * kernel.tile_n;
}

bool same_tile(const KernelDescriptor& x, const KernelDescriptor& y) noexcept {
  return x.tile_m == y.tile_m && x.tile_n == y.tile_n;
}

// The registry lists the most capable kernel first: of two with the same tile the first one serves.
bool already_has(const PlanInput& input, const KernelSet& set, const KernelDescriptor& kernel) noexcept {
  return std::any_of(set.index.begin(), set.index.begin() + set.count,
                     [&](std::int32_t i) { return same_tile(input.kernels[i], kernel); });
}

void restrict(const PlanInput& input, KernelChoice choice, KernelSet& set) noexcept {
  if (choice == KernelChoice::all) return;
  std::int64_t largest = 0;
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < set.count; ++i) {
    largest = std::max(largest, tile_area(input.kernels[set.index[i]]));
    smallest = std::min(smallest, tile_area(input.kernels[set.index[i]]));
  }
  if (largest == smallest) return;
  int kept = 0;
  for (int i = 0; i < set.count; ++i) {
    const std::int64_t area = tile_area(input.kernels[set.index[i]]);
    const bool keep = choice == KernelChoice::small ? area < largest : area == smallest;
    if (keep) set.index[kept++] = set.index[i];
  }
  set.count = choice == KernelChoice::smallest ? std::min(kept, 1) : kept;
}

void align(const PlanInput& input, KernelSet& set) noexcept {
  constexpr std::int64_t kGridLimit = 65535;
  set.align_m = set.align_n = kPanelAlignment;
  set.align_k = 1;
  set.max_rows = set.max_cols = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < set.count; ++i) {
    const KernelDescriptor& kernel = input.kernels[set.index[i]];
    set.align_m = std::lcm(set.align_m, static_cast<std::int64_t>(kernel.tile_m));
    set.align_n = std::lcm(set.align_n, static_cast<std::int64_t>(kernel.tile_n));
    set.align_k = std::lcm(set.align_k, static_cast<std::int64_t>(kernel.tile_k));
    set.max_rows = std::min(set.max_rows, kGridLimit * kernel.tile_m);
    set.max_cols = std::min(set.max_cols, kGridLimit * kernel.tile_n);
  }
  set.max_rows = std::max(set.align_m, set.max_rows / set.align_m * set.align_m);
  set.max_cols = std::max(set.align_n, set.max_cols / set.align_n * set.align_n);
}

}  // namespace

bool choose_kernels(const PlanInput& input, KernelChoice choice, KernelSet& set) noexcept {
  const auto usable = [](const KernelDescriptor& kernel) {
    return kernel.role == KernelRole::gemm && kernel.precision == Precision::fp32;
  };
  const bool larger_exists = std::any_of(
      input.kernels.begin(), input.kernels.end(),
      [&](const KernelDescriptor& kernel) { return usable(kernel) && tile_area(kernel) >= kSmallestTile; });
  set = KernelSet{};
  for (std::size_t i = 0; i < input.kernels.size() && set.count < KernelSet::kCapacity; ++i) {
    const KernelDescriptor& kernel = input.kernels[i];
    if (!usable(kernel)) continue;
    if (kernel.tile_m < 1 || kernel.tile_n < 1 || kernel.tile_k < 1) continue;
    if (tile_area(kernel) < kSmallestTile && larger_exists) continue;
    if (!already_has(input, set, kernel)) set.index[set.count++] = static_cast<std::int32_t>(i);
  }
  restrict(input, choice, set);
  align(input, set);
  return set.count > 0;
}

bool choose_image_kernels(const PlanInput& input, KernelSet& set) noexcept {
  set = KernelSet{};
  if (input.precision == Precision::fp32 || !(flops_per_s(*input.profile, input.precision) > 0)) return false;
  ImageKernels found;
  if (!find_image_kernels(input.kernels, input.precision, found)) return false;
  set.prepare = found.prepare;
  set.leftover = found.leftover;
  set.index[set.count++] = found.product;
  align(input, set);
  set.align_m = std::lcm(set.align_m, std::int64_t{kImageRows});
  set.align_n = std::lcm(set.align_n, std::int64_t{kImageRows});
  set.align_k = std::lcm(set.align_k, std::int64_t{kImageK});
  if (set.leftover >= 0)
    set.align_k = std::lcm(set.align_k, std::int64_t{input.kernels[set.leftover].tile_k});
  return true;
}

bool has_transpose_kernel(const PlanInput& input) noexcept {
  return find_kernel(input.kernels, KernelRole::transpose, Precision::fp32) >= 0;
}

// A chunk costs the link its latency once (H200, queued: 2.7 us in, 1.7 us out, hence 256 KiB chunks at 35 of
// 55 GB/s, 1 MiB at 48, 4 MiB at 53), so a stream of S bytes loses latency * S / chunk; the pipeline's fill
// and its tail cost about two chunks more at the link's rate. The sum is least at
// chunk = sqrt(S * latency * rate / 2), where a link without latency still has the worker that issues the
// copies. Past 4 MiB there is nothing left to gain; under 128 KiB the calls themselves dominate.
bool choose_staging(const PlanInput& input, Staging& staging) noexcept {
  constexpr std::int64_t kLargestChunk = std::int64_t{4} << 20;
  constexpr std::int64_t kSmallestChunk = std::int64_t{128} << 10;
  constexpr std::int64_t kFewestSlots = 4;  // two each way
  const double m = static_cast<double>(input.m), n = static_cast<double>(input.n);
  const double in_bytes = 4.0 * (m + n) * static_cast<double>(input.k);
  const double stream_bytes = std::max(in_bytes, 4.0 * m * n);
  const LinkRate& link = input.profile->h2d;
  const double each_s = std::max(link.latency_s, issue_seconds(needs_landing(input)));
  const double best = std::sqrt(stream_bytes * each_s * link.bytes_per_s / 2);
  const double bounded =
      std::clamp(best, static_cast<double>(kSmallestChunk), static_cast<double>(kLargestChunk));
  staging.chunk_bytes = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bounded * 1.42)));
  // At least eight slots where the arena allows: four chunks in flight each way hide the copy threads'
  // jitter.
  while (staging.chunk_bytes > kSmallestChunk && input.pinned_bytes / staging.chunk_bytes < 8) {
    staging.chunk_bytes /= 2;
  }
  while (staging.chunk_bytes > 4096 && input.pinned_bytes / staging.chunk_bytes < kFewestSlots) {
    staging.chunk_bytes /= 2;
  }
  const std::int64_t slots = input.pinned_bytes / staging.chunk_bytes;
  if (slots < kFewestSlots) return false;
  // More than 16 slots each way only spreads the traffic over more of the last-level cache.
  const std::int64_t in_slots = (slots * 5 + 4) / 8;  // operands are most of the bytes of a deep product
  staging.h2d_slots =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(in_slots, 2, std::min<std::int64_t>(16, slots - 2)));
  staging.d2h_slots = static_cast<std::int32_t>(std::clamp<std::int64_t>(slots - staging.h2d_slots, 2, 16));
  // A piece is one thread's task. Sixteen to a chunk, so that all threads share each: the first chunk is on
  // its way when it is copied, and a thread that loses its CPU keeps little from the others. 128 KiB pieces
  // reach the best rate (12 threads, 8 MiB: 102 GB/s, with 32 KiB 99, with 512 KiB 75).
  staging.piece_bytes = std::clamp<std::int64_t>(staging.chunk_bytes / 16, 32 << 10, std::int64_t{256} << 10);
  staging.piece_bytes = std::min(staging.piece_bytes, staging.chunk_bytes);
  staging.landing_bytes = needs_landing(input) ? staging.h2d_slots * staging.chunk_bytes : 0;
  return true;
}

namespace {

double weight(Taper taper, std::int64_t i, std::int64_t count) noexcept {
  if (count < 3) return 1;
  switch (taper) {
    case Taper::none:
      return 1;
    case Taper::ends:
      return i == 0 || i == count - 1 ? 0.5 : 1;
    case Taper::tail:  // from 1.6 down to 0.4: strips of about equal area
      return 1.6 - 1.2 * static_cast<double>(i) / static_cast<double>(count - 1);
  }
  return 1;
}

}  // namespace

void cut(Range whole, std::int64_t align, std::int64_t count, Taper taper, std::vector<Range>& panels) {
  panels.clear();
  const std::int64_t tiles = divide_up(whole.extent, align);
  count = std::clamp<std::int64_t>(count, 1, tiles);
  double total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += weight(taper, i, count);
  double passed = 0;
  std::int64_t begin = 0;  // in tiles
  for (std::int64_t i = 0; i < count; ++i) {
    passed += weight(taper, i, count);
    auto end = static_cast<std::int64_t>(passed / total * static_cast<double>(tiles) + 0.5);
    end = i + 1 == count ? tiles : std::min(end, tiles);
    if (end <= begin) continue;
    const std::int64_t first = begin * align;
    const std::int64_t extent = std::min(end * align, whole.extent) - first;
    panels.push_back({whole.begin + first, extent});
    begin = end;
  }
}

}  // namespace gemmhoist::plan
