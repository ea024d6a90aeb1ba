// Tiling: which kernels a plan may use, how an extent is cut into panels, and how the pinned memory is cut
// into slots. Internal to the layer.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/plan.hpp"

namespace gemmhoist::plan {

// The kernels that a plan chooses among, and what they ask of every edge.
struct KernelSet {
  static constexpr int kCapacity = 8;
  std::array<std::int32_t, kCapacity> index{};  // into PlanInput::kernels
  int count = 0;
  // Panel edges are multiples of every tile (and of kPanelAlignment), depths of every tile_k.
  std::int64_t align_m = kPanelAlignment, align_n = kPanelAlignment, align_k = 1;
  // One launch stays within these: 32-bit extents, and at most 65535 tiles each way, which every grid
  // dimension takes.
  std::int64_t max_rows = 0, max_cols = 0;
  // Products of images: what makes them, and what computes the tiles that they leave out; -1: none.
  std::int32_t prepare = -1, leftover = -1;
  bool images() const noexcept { return prepare >= 0; }
};

enum class KernelChoice : std::uint8_t {
  all,
  small,     // without the largest tiles: finer panels for small products
  smallest,  // one kernel, the smallest tile: the least memory
};

// Kernels in strict fp32. False where the set is empty.
bool choose_kernels(const PlanInput& input, KernelChoice choice, KernelSet& set) noexcept;
// The one kernel that multiplies images in the product's precision, and its company. False where the
// precision is fp32, where one of them is missing, or where their rate is not known.
bool choose_image_kernels(const PlanInput& input, KernelSet& set) noexcept;

// Whether a landed chunk of the operand has to be turned round: panels are K-outer, hence operands stored
// with k contiguous need it (A transposed; B not transposed).
constexpr bool lands_k_contiguous(Operand operand, const PlanInput& input) noexcept {
  return operand == Operand::a ? input.trans_a == Transpose::yes : input.trans_b == Transpose::no;
}
constexpr bool needs_landing(const PlanInput& input) noexcept {
  return lands_k_contiguous(Operand::a, input) || lands_k_contiguous(Operand::b, input);
}
bool has_transpose_kernel(const PlanInput& input) noexcept;

// How the pinned arena is cut.
struct Staging {
  std::int64_t chunk_bytes = 0;
  std::int64_t piece_bytes = 0;
  std::int32_t h2d_slots = 0, d2h_slots = 0;
  std::int64_t landing_bytes = 0;  // on the device
};
// False where the arena is too small for two slots each way.
bool choose_staging(const PlanInput& input, Staging& staging) noexcept;

// Panel sizes along one side.
enum class Taper : std::uint8_t {
  none,  // all alike
  ends,  // half-size first and last panels: arithmetic starts earlier, less of it is exposed at the end
  tail,  // shrinking towards the end, where a panel's strip is longest
};
// Cuts `whole` into at most `count` panels whose inner edges are multiples of `align` from its begin.
void cut(Range whole, std::int64_t align, std::int64_t count, Taper taper, std::vector<Range>& panels);

}  // namespace gemmhoist::plan
