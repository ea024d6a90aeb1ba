#include "plan/plan.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/checked.hpp"
#include "plan/blocks.hpp"
#include "plan/makespan.hpp"
#include "plan/schedule.hpp"
#include "plan/tiling.hpp"

namespace gemmhoist::plan {
namespace {

// A product that fills the chip with large tiles several times over gains nothing from finer panels.
constexpr std::int64_t kSmallEdge = 3072;

// The model is right to some ten per cent, and to one or two from one plan to another.
constexpr double kClearlyLess = 0.99;

// The best cutting so far, by predicted time.
struct Best {
  Cutting cutting;
  KernelSet kernels;
  double seconds = std::numeric_limits<double>::max();
};

// Images bring launches and memory traffic of which the model knows least: at n = 2048 on an H200 they were
// to gain two per cent of a call and lost five.
constexpr double kWorthImages = 0.95;

void consider(const PlanInput& input, const KernelSet& kernels, const Staging& staging,
              const Cutting& cutting, Best& best) {
  if (!fits(input, kernels, staging, cutting)) return;
  Schedule schedule(input, kernels, staging, cutting, nullptr, nullptr);
  schedule.walk();
  const double seconds = schedule.predicted_s();
  // Less is under the model's own error: the plan with fewer steps, considered first, stays.
  if (seconds < kClearlyLess * best.seconds) best = {cutting, kernels, seconds};
}

// Everything on the device at once: first the panel count (few panels expose the first upload and the last
// strip, many starve the SMs and the link; waves make the curve jagged, so all are tried), then the taper,
// the pieces and the thrift, each alone. A walk costs the planner some 10 us.
void consider_panels(const PlanInput& input, const KernelSet& kernels, const Staging& staging, Best& best) {
  const Cutting whole = whole_product(input, kernels);
  constexpr std::int64_t kCounts[] = {1, 2, 3, 5, 8, 12, 16, 24, 32};
  const std::int64_t longest = std::max(input.m, input.n);
  const auto panels = [&](std::int64_t extent, std::int64_t count) {
    return std::max<std::int64_t>(1, (extent * 2 / divide_up(longest, count) + 1) / 2);
  };
  Best own;
  for (const std::int64_t count : kCounts) {
    Cutting cutting = whole;
    cutting.panels_a = panels(input.m, count);
    cutting.panels_b = panels(input.n, count);
    cutting.pieces = count <= 2 ? 4 : 1;
    consider(input, kernels, staging, cutting, own);
  }
  const auto vary = [&](auto&& change) {
    Cutting cutting = own.cutting;
    change(cutting);
    consider(input, kernels, staging, cutting, own);
  };
  vary([](Cutting& c) { c.taper = Taper::ends; });
  vary([](Cutting& c) { c.taper = Taper::tail; });
  vary([](Cutting& c) { c.thrift = 0.1; });
  vary([](Cutting& c) { c.thrift = 5; });
  vary([](Cutting& c) { c.pieces = c.pieces == 1 ? 2 : 1; });
  vary([](Cutting& c) { c.pieces = 4; });
  if (own.seconds < kClearlyLess * best.seconds) best = own;
}

// Deep products with little C, and small ones: slices of k let arithmetic begin with the first slice, where
// whole-depth strips would wait for most of the upload, and a panel of few tiles starves the SMs.
void consider_slices(const PlanInput& input, const KernelSet& kernels, const Staging& staging, Best& best) {
  const bool deep = input.k >= 2 * std::min(input.m, input.n);
  const bool small = std::max({input.m, input.n, input.k}) <= kSmallEdge;
  if (!deep && !small) return;
  for (const std::int64_t slices : {2, 4, 8, 16, 32}) {
    if (slices > 8 && !deep) return;
    Cutting cutting = whole_product(input, kernels);
    cutting.slice_k = round_up(divide_up(input.k, slices), kernels.align_k);
    if (cutting.slice_k >= input.k) return;
    cutting.panel_buffers = 2;
    for (const std::int64_t pieces : {1, 2, 4}) {
      cutting.pieces = pieces;
      consider(input, kernels, staging, cutting, best);
    }
  }
}

// Growing L in two slices of k, on C whole or in a few blocks. Arithmetic starts with half of the first
// panels, and results of the first blocks go home while the last ones are computed: on the model machine 1.25
// instead of 1.31 of the floor at n = 4096, and 1.07 instead of 1.08 at 8192 (2 x 2 blocks).
void consider_halves(const PlanInput& input, const KernelSet& kernels, const Staging& staging, Best& best) {
  const Cutting whole = whole_product(input, kernels);
  if (input.k <= kernels.align_k) return;
  struct Grid {
    std::int64_t rows, cols;
  };
  for (const Grid grid : {Grid{1, 1}, Grid{1, 2}, Grid{2, 1}, Grid{2, 2}}) {
    Cutting cutting = whole;
    cutting.block_m = round_up(divide_up(input.m, grid.rows), kernels.align_m);
    cutting.block_n = round_up(divide_up(input.n, grid.cols), kernels.align_n);
    cutting.slice_k = round_up(divide_up(input.k, 2), kernels.align_k);
    cutting.panel_buffers = 2;
    cutting.c_buffers = cutting.blocked(input) ? 2 : 1;
    for (const std::int64_t panels : {4, 8}) {
      // Finer panels cost launches: those that shrink towards the end, where little is left to overlap with.
      if (panels > 4 && std::max(input.m, input.n) <= kSmallEdge) continue;
      cutting.panels_a = cutting.panels_b = panels;
      cutting.taper = panels == 4 ? Taper::none : Taper::tail;
      for (const std::int64_t pieces : {1, 4}) {
        cutting.pieces = pieces;
        consider(input, kernels, staging, cutting, best);
      }
    }
  }
}

void consider_small_tiles(const PlanInput& input, const Staging& staging, Best& best) {
  if (std::max(input.m, input.n) > kSmallEdge) return;
  KernelSet small;
  if (!choose_kernels(input, KernelChoice::small, small)) return;
  consider_panels(input, small, staging, best);
}

void consider_whole(const PlanInput& input, const KernelSet& kernels, const Staging& staging, Best& best) {
  if (!fits(input, kernels, staging, whole_product(input, kernels))) return;
  consider_panels(input, kernels, staging, best);
  consider_slices(input, kernels, staging, best);
  consider_halves(input, kernels, staging, best);
}

struct Blocks {
  Staging staging;
  Best best;
};

bool choose_blocks(const PlanInput& input, Blocks& blocks) noexcept {
  Best& best = blocks.best;
  return choose_beyond_memory(input, blocks.staging, best.kernels, best.cutting, best.seconds);
}

double walked_seconds(const PlanInput& input, const Blocks& blocks) {
  Schedule schedule(input, blocks.best.kernels, blocks.staging, blocks.best.cutting, nullptr, nullptr);
  schedule.walk();
  return schedule.predicted_s();
}

bool choose(const PlanInput& input, Staging& staging, Best& best) {
  if (KernelSet kernels; choose_kernels(input, KernelChoice::all, kernels)) {
    consider_whole(input, kernels, staging, best);
    if (best.seconds < std::numeric_limits<double>::max()) consider_small_tiles(input, staging, best);
  }
  KernelSet images;
  const bool has_images = choose_image_kernels(input, images);
  if (has_images) {
    Best of_images;
    consider_whole(input, images, staging, of_images);
    if (of_images.seconds < kWorthImages * best.seconds) best = of_images;
  }
  const bool any_fits = best.seconds < std::numeric_limits<double>::max();
  if (any_fits && (!has_images || fits(input, images, staging, whole_product(input, images)))) return true;
  // Images take more than twice the memory: blocks of them may beat a whole product without, or blocks
  // without. The closed form that proposes them knows little of what they add to each slice, hence the walks.
  Blocks blocks{staging, {}};
  if (!choose_blocks(input, blocks)) return any_fits;
  if (blocks.best.kernels.images()) {
    PlanInput strict = input;
    strict.precision = Precision::fp32;
    Blocks without{staging, {}};
    double rival_s = best.seconds;
    if (!any_fits && choose_blocks(strict, without)) rival_s = walked_seconds(strict, without);
    if (walked_seconds(input, blocks) >= kWorthImages * rival_s) {
      if (any_fits) return true;
      blocks = without;
    }
  } else if (any_fits) {
    return true;
  }
  best = blocks.best;
  staging = blocks.staging;
  return true;
}

void emit(const PlanInput& input, const Best& best, const Staging& staging, Plan& plan) {
  Footprint need;
  (void)footprint(input, best.kernels, staging, best.cutting, need);  // it did fit
  plan = Plan{};
  plan.lda = need.lda;
  plan.ldb = need.ldb;
  plan.ldc = need.ldc;
  plan.depth_padded = need.depth_padded;
  plan.a_bytes = need.a_bytes;
  plan.b_bytes = need.b_bytes;
  plan.c_bytes = need.c_bytes;
  plan.images = need.images;
  plan.device_bytes = need.total_bytes;
  plan.panel_buffers = best.cutting.panel_buffers;
  plan.c_buffers = best.cutting.c_buffers;
  plan.chunk_bytes = staging.chunk_bytes;
  plan.piece_bytes = staging.piece_bytes;
  plan.h2d_slots = staging.h2d_slots;
  plan.d2h_slots = staging.d2h_slots;
  Schedule schedule(input, best.kernels, staging, best.cutting, &plan.steps, &plan.blocks);
  schedule.walk();
  plan.predicted_s = makespan(plan, input);
  plan.predicted_kernel_s = schedule.kernel_s();
}

}  // namespace

PlanError make_plan(const PlanInput& input, Plan& plan) {
  KernelSet any;
  if (!choose_kernels(input, KernelChoice::all, any) && !choose_image_kernels(input, any))
    return PlanError::no_kernel;
  if (needs_landing(input) && !has_transpose_kernel(input)) return PlanError::no_kernel;
  if (input.m <= 0 || input.n <= 0 || input.k <= 0) return PlanError::no_kernel;
  Staging staging;
  if (!choose_staging(input, staging)) return PlanError::too_little_memory;
  Best best;
  if (!choose(input, staging, best)) return PlanError::too_little_memory;
  emit(input, best, staging, plan);
  return PlanError::none;
}

}  // namespace gemmhoist::plan
