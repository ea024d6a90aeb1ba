// sgemm_fp32_64x64x16_s3_streamk_nn_sm80: the tile of sgemm_fp32_64x64x16_s3_sm80, dealt out by iterations of
// k, from a caller's own matrices of which B has k contiguous: column-major, op(A) op(B) = NN. From sm_80 on.
//
// Contract: StreamKParams (stream_k.hpp). Edges of A and B become zeros on their way; edges of C are handled
// in the epilogue; without accumulate C is not read. An element that lies in a whole tile is summed over k in
// order, one FMA a term, from +0; one in a tile that is cut is the sum of its parts in the order of k, each
// made so.
//
// An operand with k contiguous is turned on its way: quads of k through registers into rows of shared memory
// that are a quad longer (TurnCopy).
//
// Picture, stages, barriers, bound: as in sgemm_fp32_64x64x16_s3_sm80.cu. A tile that is cut costs its parts'
// way through the L2 once: 16 KiB a part each way.
//
// Resources: 128 threads, 25344 bytes of shared memory, 4 blocks an SM, no spills (a test reads
// the compiler's report).
// Measured on an H200 with CUDA 13.0, bench_kernels (bench/results/2026-11-30-fp32-shapes.md): n = 512 10.9,
// 1024 28.4, 8192 36.5 TFLOP/s; 1.02, 0.87, 0.71 of cuBLAS 13: for products too small for a launch that turns
// B first.
#include "kernels/sgemm_fp32_64x64x16_s3_streamk_nn_sm80.hpp"
#include "kernels/simt_stream_k.cuh"

namespace gemmhoist::kernels {

struct StreamK64x64x16NN {
  static constexpr const KernelDescriptor& kFacts = descriptor_sgemm_fp32_64x64x16_s3_streamk_nn_sm80;
  using Tile = SimtTile<kFacts.tile_m, kFacts.tile_n, kFacts.tile_k, kFacts.stages, kFacts.threads, 8, 4>;
  using Kind = StreamKTile<Tile, Lies::k_outer, Lies::k_inner>;
  static_assert(Kind::kSharedBytes == kFacts.shared_bytes);
  static constexpr std::uint32_t kGroup = 24;
};

}  // namespace gemmhoist::kernels

extern "C" __global__ void __launch_bounds__(128, 4)
    sgemm_fp32_64x64x16_s3_streamk_nn_sm80(const __grid_constant__ gemmhoist::kernels::StreamKParams params) {
  using Kernel = gemmhoist::kernels::StreamK64x64x16NN;
  gemmhoist::kernels::gemm_stream_k<Kernel::Kind>(params, Kernel::kGroup);
}
