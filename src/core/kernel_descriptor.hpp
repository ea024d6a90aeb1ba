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
};

// One name everywhere: file, function, registry, test, bench and statistics; made of facts.
struct KernelDescriptor {
  const char* name;  // e.g. "sgemm_fp32_128x256x32_s3_sm80"; also the symbol in the fatbin
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

// Largest panel alignment that any kernel asks for, in elements.
inline constexpr std::int64_t kPanelAlignment = 32;

}  // namespace gemmhoist
