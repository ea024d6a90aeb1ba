// sgemm_fp32_128x256x32_s3_streamk_nt_sm80: the tile of sgemm_fp32_128x256x32_s3_sm80, dealt out by
// iterations of k, from a caller's own matrices of which neither operand has k contiguous: column-major,
// op(A) op(B) = NT. From sm_80 on.
//
// Contract: StreamKParams (stream_k.hpp). Edges of A and B become zeros on their way; edges of C are handled
// in the epilogue; without accumulate C is not read. An element that lies in a whole tile is summed over k in
// order, one FMA a term, from +0; one in a tile that is cut is the sum of its parts in the order of k, each
// made so.
//
// Picture, stages, barriers, bound: as in sgemm_fp32_128x256x32_s3_sm80.cu. A tile that is cut costs its
// parts' way through the L2 once: 128 KiB a part each way.
//
// Resources: 256 threads, 147456 bytes of shared memory, 1 block an SM, no spills (a test reads
// the compiler's report).
// Measured on an H200 with CUDA 13.0, NT, bench_kernels (bench/results/2026-11-30-fp32-shapes.md): n =
// 1024 33.2, 2048 48.1, 4096 51.4, 8192 52.1 TFLOP/s, 0.94, 0.95, 1.00, 0.98 of cuBLAS 13; 512 x 512 x
// 65536 49.1 (0.95), 1024 x 1024 x 16384 50.2 (0.99), 3000 cubed 47.2 (1.05), 128 x 16384 x 4096 48.2 (1.01).
//
// Tried and dropped: a loop body of 32 steps (same page, first run): 8192 53.5, but 4096 48.2, 2048 44.8, 512
// x 512 x 65536 46.0, since blocks whose pieces begin anywhere do not share instructions; 128 x 128 by 128
// threads, two blocks an SM, with that body: 30 at 2048; operands with k contiguous turned through registers
// on their way: B 33.7, A 43.7, both 28.8 at 8192, where turning them first costs 1 %; partial sums written
// by quads, which bind accumulators to neighbouring registers: 2955 instead of 434 of 4096 FMAs meet a
// register-bank conflict.
#include "kernels/sgemm_fp32_128x256x32_s3_streamk_nt_sm80.hpp"
#include "kernels/simt_stream_k.cuh"

namespace gemmhoist::kernels {

struct StreamK128x256x32NT {
  static constexpr const KernelDescriptor& kFacts = descriptor_sgemm_fp32_128x256x32_s3_streamk_nt_sm80;
  using Tile = SimtTile<kFacts.tile_m, kFacts.tile_n, kFacts.tile_k, kFacts.stages, kFacts.threads, 8, 16>;
  using Kind = StreamKTile<Tile, Lies::k_outer, Lies::k_outer>;
  static_assert(Kind::kSharedBytes == kFacts.shared_bytes);
  static constexpr std::uint32_t kGroup = 16;
};

}  // namespace gemmhoist::kernels

extern "C" __global__ void __launch_bounds__(256, 1) sgemm_fp32_128x256x32_s3_streamk_nt_sm80(
    const __grid_constant__ gemmhoist::kernels::StreamKParams params) {
  using Kernel = gemmhoist::kernels::StreamK128x256x32NT;
  gemmhoist::kernels::gemm_stream_k<Kernel::Kind>(params, Kernel::kGroup);
}
