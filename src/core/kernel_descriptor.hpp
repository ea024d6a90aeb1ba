// KernelDescriptor: the facts about one GPU kernel that everybody outside its file may know.
#pragma once

#include <cstdint>

namespace gemmhoist {

enum class Precision : std::uint8_t { fp32, bf16x6, tf32 };

constexpr const char* to_string(Precision p) noexcept {
  return p == Precision::fp32 ? "fp32" : p == Precision::bf16x6 ? "bf16x6" : "tf32";
}

enum class KernelRole : std::uint8_t {
  gemm,            // GemmKernelParams
  transpose,       // TransposeKernelParams: a landed chunk into its place in a K-outer panel
  gemm_reference,  // GemmKernelParams, by a plain loop: what other kernels are checked against, never planned
  prepare,         // PrepareKernelParams: an operand into its image for the products of the same precision
  gemm_prepared,   // PreparedGemmKernelParams: the product of two images, by tensor cores
  gemm_leftover,   // PreparedGemmKernelParams: in fp32, the tiles that the product of images left out
  gemm_stream_k,   // kernels::StreamKParams: a product of matrices as they lie, dealt out by iterations of k
};

// One name everywhere: file, function, registry, test, bench and statistics; made of facts.
struct KernelDescriptor {
  const char* name;  // e.g. "sgemm_fp32_128x256x16_s6_sm80"; also the symbol in the fatbin
  KernelRole role;
  Precision precision;
  std::int32_t min_arch;  // compute capability times ten: 75, 80, 90
  std::int32_t tile_m;    // rows of C (or of the chunk) a block makes
  std::int32_t tile_n;    // columns of C (or of the chunk) a block makes
  std::int32_t tile_k;    // depth of one stage; panels are zero-padded to a multiple of it
  std::int32_t stages;
  std::int32_t threads;        // a block
  std::int32_t shared_bytes;   // dynamic shared memory a block
  std::int32_t blocks_per_sm;  // resident at once, by registers and shared memory
  bool arch_specific = false;  // made for min_arch alone ("90a"): no later one runs it
  bool a_k_inner = false;      // gemm_stream_k: reads an A whose contiguous dimension is k
  bool b_k_inner = false;
  bool any_alignment = false;  // gemm_stream_k: of K-outer operands; K-inner ones may lie anywhere
};

// C[i + j ldc] = alpha * (sum over p of a[i + p lda] * b[j + p ldb] + (accumulate ? C[i + j ldc] : 0)),
// for i < m, j < n. Panels are K-outer: for each p, consecutive i (or j). The kernel may read, but never use
// for an element of C, a[i + p lda] up to i < round_up(m, tile_m), likewise b; and for all p < k, where k is
// a multiple of tile_k (padding rows are zero in both operands). All lengths in elements; pointers and
// leading dimensions are multiples of 32 elements (128 bytes), c and ldc of 4. Without accumulate C is not
// read.
struct GemmKernelParams {
  const float* a;
  const float* b;
  float* c;
  std::int64_t lda, ldb, ldc;
  std::int32_t m, n, k;
  float alpha;
  std::int32_t accumulate;
};

// destination[row + col ld_destination] = source[col + row ld_source] for row < rows, col < cols: the chunk's
// contiguous dimension is `cols` (of k) and becomes the outer one.
struct TransposeKernelParams {
  const float* source;
  float* destination;
  std::int64_t ld_source, ld_destination;
  std::int32_t rows, cols;
};

// Image of an operand: its values as the tensor cores take them, cut into units of kImageRows rows (of A, or
// columns of B) by kImageK steps of k. A unit is contiguous and is byte for byte what a stage of shared
// memory holds, so that one bulk copy brings it: `pieces` planes, the largest piece first; in a plane one row
// after another, k innermost, rows in the swizzle of their length (64 or 128 bytes).
inline constexpr std::int32_t kImageRows = 128;
inline constexpr std::int32_t kImageK = 32;
inline constexpr std::int32_t kImageAlignment = 128;  // bytes

struct ImageFacts {
  std::int32_t pieces, element_bytes;
  constexpr std::int32_t plane_bytes() const noexcept { return kImageRows * kImageK * element_bytes; }
  constexpr std::int32_t unit_bytes() const noexcept { return pieces * plane_bytes(); }
};
constexpr ImageFacts image_facts(Precision p) noexcept {
  return p == Precision::bf16x6 ? ImageFacts{3, 2} : ImageFacts{1, 4};
}

// Of one unit, as bit patterns without the sign, whose order is that of magnitudes: the greatest (0x7F800000
// or more: Inf or NaN among them) and the least that is not zero (all ones: there is none).
struct MagnitudeRange {
  std::uint32_t least, greatest;
};

// Unit (t, q) of the image, at image + (t unit_pitch + q) unit_bytes, and ranges[t unit_pitch + q] are made
// of source[i row_stride + p k_stride] for i in [128 t, 128 t + 128), p in [32 q, 32 q + 32); what is outside
// rows x k counts as zero and is not read. One of the strides is 1. padded_rows and padded_k are multiples
// of 128 and 32: what of the image is written. `ranges` may be null where the precision has no need of it.
struct PrepareKernelParams {
  const float* source;
  void* image;
  MagnitudeRange* ranges;
  std::int64_t row_stride, k_stride, unit_pitch;
  std::int32_t rows, k, padded_rows, padded_k;
};

// The product that `gemm` states, its operands taken from images of their rows (padded to tile_m or tile_n)
// and gemm.k steps, a multiple of kImageK. out_of_range[t + u ceil(m / 128)] becomes 1 for a tile of 128 x
// 128 that the precision cannot make as well as fp32; it is then left as it was, for the leftover kernel,
// which alone reads the panels gemm.a and gemm.b. Ranges and out_of_range are null for tf32.
// While a kernel runs, its C may hold unscaled partial sums, to which what was in C belongs from the first
// on.
struct PreparedGemmKernelParams {
  GemmKernelParams gemm;
  const void* a_image;
  const void* b_image;
  const MagnitudeRange* a_ranges;
  const MagnitudeRange* b_ranges;
  std::uint8_t* out_of_range;
  std::int64_t a_unit_pitch, b_unit_pitch;
};

// Largest panel alignment that any kernel asks for, in elements.
inline constexpr std::int64_t kPanelAlignment = 32;

}  // namespace gemmhoist
