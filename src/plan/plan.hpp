// Plan: how one product goes through the device. Pure: values in, a printable value out.
//
// The product is cut into C blocks (one, unless the operands exceed the device memory), each C block into
// slices of k (one, likewise), each slice into panels of A (ranges of m) and of B (ranges of n). Panels are
// uploaded in growing-L order; after each, every strip of C that it completes is computed over the slice's
// whole depth, and, after the last slice, sent home.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/gemm_call.hpp"
#include "core/kernel_descriptor.hpp"
#include "core/machine_profile.hpp"

namespace gemmhoist::plan {

struct Range {
  std::int64_t begin = 0;
  std::int64_t extent = 0;
  std::int64_t end() const noexcept { return begin + extent; }
  bool operator==(const Range&) const = default;
};

enum class Operand : std::uint8_t { a, b };
enum class StepKind : std::uint8_t { upload, compute, write_back };

// One step. Ranges are in the coordinates of the whole product. `after` are indices of earlier steps that
// must have finished on the device first (beyond the order within the step's own stream): for write_back its
// compute; for compute the last upload that it needs and, where a buffer is used again, the write_back of its
// former content; for upload the computes that still read the buffer it overwrites.
struct Step {
  StepKind kind = StepKind::upload;
  Operand operand = Operand::a;  // upload
  Range rows;                    // upload of A, compute, write_back: range of m
  Range cols;                    // upload of B, compute, write_back: range of n
  Range depth;                   // upload, compute: range of k
  bool accumulate = false;       // compute: adds to what earlier slices left in C
  bool last_slice = true;        // compute: applies alpha; its C is final
  std::int32_t kernel = -1;      // compute: index into PlanInput::kernels
  std::int32_t stream = 0;       // compute: which compute stream
  std::int32_t buffer = 0;       // which set of panel buffers (upload, compute)
  std::int32_t c_buffer = 0;     // which C buffer (compute, write_back)
  std::int32_t block = 0;        // which C block: the origin of buffer coordinates is the block's begin
  std::int64_t marks = 0;        // compute of images that may leave tiles out: its first byte of the marks
  std::vector<std::int32_t> after;
};

// A C block and its buffers' origin.
struct Block {
  Range rows, cols;
};

// Images of the panels, for products by tensor cores (core/kernel_descriptor.hpp). An upload's panel becomes
// an image as soon as it is whole; a panel's place in its buffer is its place in the image.
struct Images {
  std::int32_t prepare = -1;    // index into PlanInput::kernels; -1: computes take the panels themselves
  std::int32_t leftover = -1;   // launched behind each compute; -1: the precision leaves no tile out
  std::int64_t unit_pitch = 0;  // units from 128 rows to the next: depth_padded / kImageK
  std::int64_t unit_bytes = 0;  // of the image
  std::int64_t a_units = 0;     // of one buffer
  std::int64_t b_units = 0;
  std::int64_t mark_bytes = 0;  // of all computes: a byte a tile of 128 x 128
  bool used() const noexcept { return prepare >= 0; }
  bool ranged() const noexcept { return leftover >= 0; }  // units have their MagnitudeRange beside them
};

struct PlanInput {
  std::int64_t m = 0, n = 0, k = 0;
  Transpose trans_a = Transpose::no, trans_b = Transpose::no;
  bool beta_zero = true;
  bool a_pinned = false, b_pinned = false;
  Precision precision = Precision::fp32;
  std::span<const KernelDescriptor> kernels;
  std::int64_t device_bytes = 0;            // what the plan may use, staging on the device included
  std::int64_t pinned_bytes = 0;            // size of the pinned arena
  const MachineProfile* profile = nullptr;  // not owned; never null
};

struct Plan {
  std::vector<Block> blocks;
  std::vector<Step> steps;

  // Panel buffers: op(A) slice as [depth_padded][lda], op(B) slice as [depth_padded][ldb]; C block as
  // [cols][ldc]. Elements. `panel_buffers` sets of A and B, `c_buffers` of C.
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::int64_t depth_padded = 0;                       // a multiple of every used kernel's tile_k
  std::int64_t a_bytes = 0, b_bytes = 0, c_bytes = 0;  // of one buffer each
  std::int32_t panel_buffers = 1, c_buffers = 1;
  Images images;
  std::int64_t device_bytes = 0;  // all buffers and the landing ring

  std::int64_t chunk_bytes = 0;               // of one H2D or D2H transfer through a pinned slot
  std::int32_t h2d_slots = 0, d2h_slots = 0;  // pinned slots of chunk_bytes each
  std::int64_t piece_bytes = 0;               // of one copy task of a thread

  double predicted_s = 0;  // end to end, fixed costs included
  double predicted_kernel_s = 0;
};

enum class PlanError : std::uint8_t { none, no_kernel, too_little_memory };

// Makes the plan; fails only where no kernel or not even the smallest plan fits. A precision other than fp32
// is a permission: its kernels are used where the device has them and the plan is the faster for it.
PlanError make_plan(const PlanInput& input, Plan& plan);

// One line a step and a header; the same text for the same input, for logs and golden tests.
std::string to_string(const Plan& plan);

// Closed-form estimate of make_plan(...).predicted_s, for decisions on a caller's thread: no allocation,
// little stack, about 100 ns.
double estimate_seconds(const PlanInput& input) noexcept;

}  // namespace gemmhoist::plan
