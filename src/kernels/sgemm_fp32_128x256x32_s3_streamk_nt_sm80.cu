// sgemm_fp32_128x256x32_s3_streamk_nt_sm80: C = alpha (A B + C) in strict fp32, dealt out by iterations of k,
// from a caller's own matrices of which neither operand has k contiguous: column-major, op(A) op(B) = NT. For
// large products of any transposes and alignments.
//
// Contract: StreamKParams (stream_k.hpp), operands of any alignment. What lies beyond k becomes zeros on its
// way, edges of C are handled in the epilogue, without accumulate C is not read. An element of a whole tile
// is summed over k in order, one FMA a term, from +0; one of a tile that is cut is the sum of its parts in
// the order of k, each made so.
//
// Picture: block 128 x 256 = 2 x 4 warps of 64 x 64; lanes 8 x 4, each 8 x 16 outputs (simt_tile.cuh).
// Copies: A by 4 bytes, B by 4 bytes (stream_k_copy.cuh). Stages, barriers: simt_stream_k.cuh. A tile that is
// cut costs its parts' way through the L2: 128 KiB each way.
//
// Resources: 256 threads, 147456 bytes of shared memory, 1 block an SM, no spills (a test reads the
// compiler's report).
// Bound: FMA issue. A step is 128 FMA against 6 shared loads of 16 bytes a thread; its copies are 1.5 a
// thread.
// Measured on an H200 with CUDA 13.0, bench_kernels (bench/results/2026-11-30-fp32-shapes-2.md), TFLOP/s and
// of cuBLAS 13: n = 2048 51.3 (1.02), n = 4096 54.0 (1.06), n = 8192 54.6 (1.03), 512 x 512 x 65536 51.1
// (1.00), 128 x 16384 x 4096 50.4 (1.05), 4097 x 4095 x 4099 52.4 (1.02).
//
// Tried and dropped (that page's candidates, scratch builds): copies of 16 bytes where operands allow
// them, as fast for NT, 8 % slower for NN, 3 % faster for TT, as the compiler schedules them; a loop body
// of 16 steps, 1 to 5 % slower; 128 x 128 by 128 threads, two blocks an SM, 0 to 2 % slower; C through
// shared memory when it is aligned, too, 4 % slower at k = 512. Before that (2026-11-30-fp32-shapes.md):
// operands with k contiguous turned through registers, 0.76 of the rate for one and 0.60 for both;
// preparing them by a launch of its own; partial sums written by quads, which bind accumulators to
// neighbouring registers, so that most FMAs meet a register-bank conflict.
#include "kernels/sgemm_fp32_128x256x32_s3_streamk_nt_sm80.hpp"
#include "kernels/simt_stream_k.cuh"

namespace gemmhoist::kernels {

struct StreamK128x256x32NT {
  static constexpr const KernelDescriptor& kFacts = descriptor_sgemm_fp32_128x256x32_s3_streamk_nt_sm80;
  using Tile = SimtTile<kFacts.tile_m, kFacts.tile_n, kFacts.tile_k, kFacts.stages, kFacts.threads, 8, 16>;
  using Kind = StreamKTile<Tile, Lies::k_outer_anywhere, Lies::k_outer_anywhere, 8, true>;
  static_assert(Tile::kSharedBytes == kFacts.shared_bytes);
  static constexpr std::uint32_t kGroup = 16;
};

}  // namespace gemmhoist::kernels

extern "C" __global__ void __launch_bounds__(256, 1) sgemm_fp32_128x256x32_s3_streamk_nt_sm80(
    const __grid_constant__ gemmhoist::kernels::StreamKParams params) {
  using Kernel = gemmhoist::kernels::StreamK128x256x32NT;
  gemmhoist::kernels::gemm_stream_k<Kernel::Kind>(params, Kernel::kGroup);
}
