// sgemm_fp32_64x128x32_s2_streamk_nt_sm90a: C = alpha (A B + C) in strict fp32, dealt out by iterations of k,
// from a caller's own matrices of which neither operand has k contiguous: column-major, op(A) op(B) = NT. For
// middling and lopsided products: four blocks an SM, whose starts and ends are hidden by one another, leave
// less of the chip idle than one large block. For sm_90a alone, where it was measured: most others have not
// the 192 KiB an SM that four blocks need.
//
// Contract: StreamKParams (stream_k.hpp), what is K-outer at multiples of 16 bytes. What lies beyond k
// becomes zeros on its way, edges of C are handled in the epilogue, without accumulate C is not read. An
// element of a whole tile is summed over k in order, one FMA a term, from +0; one of a tile that is cut is
// the sum of its parts in the order of k, each made so.
//
// Picture: block 64 x 128 = 1 x 4 warps of 64 x 32; lanes 8 x 4, each 8 x 8 outputs (simt_tile.cuh).
// Copies: A by 16 bytes, B by 16 bytes (stream_k_copy.cuh). Stages, barriers: simt_stream_k.cuh. A tile that
// is cut costs its parts' way through the L2: 32 KiB each way.
//
// Resources: 128 threads, 49152 bytes of shared memory, 4 blocks an SM, no spills (a test reads the
// compiler's report).
// Bound: FMA issue. A step is 64 FMA against 4 shared loads of 16 bytes a thread; its copies are 0.38 a
// thread.
// Measured on an H200 with CUDA 13.0, bench_kernels (bench/results/2026-11-30-fp32-shapes-2.md), TFLOP/s and
// of cuBLAS 13: n = 1024 38.9 (1.16), n = 4096 52.8 (1.04), 8192 x 8192 x 512 51.2 (1.02), 16384 x 128 x 4096
// 48.9 (1.08), 50000 x 256 x 784 50.5 (0.99).
//
// Tried and dropped (that page's candidates, scratch builds): stages of 16 steps, 5 to 9 % slower where an
// operand is turned (a line of global memory is then fetched in halves, two stages apart); copies of 4
// bytes throughout, 3 to 5 % slower; a body of 8 steps, which spills for NN; warps that turn 16 steps of k
// of 2 neighbours at a time instead of 8 of 4, 4 to 10 % slower by the addresses that it takes; fragments
// with registers of their own for NN and TN, which spill.
#include "kernels/sgemm_fp32_64x128x32_s2_streamk_nt_sm90a.hpp"
#include "kernels/simt_stream_k.cuh"

namespace gemmhoist::kernels {

struct StreamK64x128x32NT {
  static constexpr const KernelDescriptor& kFacts = descriptor_sgemm_fp32_64x128x32_s2_streamk_nt_sm90a;
  using Tile = SimtTile<kFacts.tile_m, kFacts.tile_n, kFacts.tile_k, kFacts.stages, kFacts.threads, 8, 8>;
  using Kind = StreamKTile<Tile, Lies::k_outer, Lies::k_outer, 16, true>;
  static_assert(Tile::kSharedBytes == kFacts.shared_bytes);
  static constexpr std::uint32_t kGroup = 24;
};

}  // namespace gemmhoist::kernels

extern "C" __global__ void __launch_bounds__(128, 4) sgemm_fp32_64x128x32_s2_streamk_nt_sm90a(
    const __grid_constant__ gemmhoist::kernels::StreamKParams params) {
  using Kernel = gemmhoist::kernels::StreamK64x128x32NT;
  gemmhoist::kernels::gemm_stream_k<Kernel::Kind>(params, Kernel::kGroup);
}
