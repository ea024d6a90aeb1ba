// sgemm_fp32_64x64x16_s3_streamk_tn_sm80: C = alpha (A B + C) in strict fp32, dealt out by iterations of k,
// from a caller's own matrices of which both have k contiguous: column-major, op(A) op(B) = TN. For small and
// thin products of any transposes and alignments.
//
// Contract: StreamKParams (stream_k.hpp), operands of any alignment. What lies beyond k becomes zeros on its
// way, edges of C are handled in the epilogue, without accumulate C is not read. An element of a whole tile
// is summed over k in order, one FMA a term, from +0; one of a tile that is cut is the sum of its parts in
// the order of k, each made so.
//
// Picture: block 64 x 64 = 1 x 4 warps of 64 x 16; lanes 8 x 4, each 8 x 4 outputs (simt_tile.cuh).
// Copies: A by 4 bytes, turned, B by 4 bytes, turned (stream_k_copy.cuh). Stages, barriers:
// simt_stream_k.cuh. A tile that is cut costs its parts' way through the L2: 16 KiB each way.
//
// Resources: 128 threads, 24576 bytes of shared memory, 4 blocks an SM, no spills (a test reads the
// compiler's report).
// Bound: FMA issue. A step is 32 FMA against 3 shared loads of 16 bytes a thread; its copies are 1 a thread.
// Measured on an H200 with CUDA 13.0, bench_kernels (bench/results/2026-11-30-fp32-shapes-2.md), TFLOP/s and
// of cuBLAS 13: n = 512 19.3 (1.18), n = 1024 34.4 (1.01), n = 4096 42.3 (0.86).
#include "kernels/sgemm_fp32_64x64x16_s3_streamk_tn_sm80.hpp"
#include "kernels/simt_stream_k.cuh"

namespace gemmhoist::kernels {

struct StreamK64x64x16TN {
  static constexpr const KernelDescriptor& kFacts = descriptor_sgemm_fp32_64x64x16_s3_streamk_tn_sm80;
  using Tile = SimtTile<kFacts.tile_m, kFacts.tile_n, kFacts.tile_k, kFacts.stages, kFacts.threads, 8, 4>;
  using Kind = StreamKTile<Tile, Lies::k_inner, Lies::k_inner, 16, true>;
  static_assert(Tile::kSharedBytes == kFacts.shared_bytes);
  static constexpr std::uint32_t kGroup = 24;
};

}  // namespace gemmhoist::kernels

extern "C" __global__ void __launch_bounds__(128, 4)
    sgemm_fp32_64x64x16_s3_streamk_tn_sm80(const __grid_constant__ gemmhoist::kernels::StreamKParams params) {
  using Kernel = gemmhoist::kernels::StreamK64x64x16TN;
  gemmhoist::kernels::gemm_stream_k<Kernel::Kind>(params, Kernel::kGroup);
}
