// sgemm_fp32_128x256x32_s3_sm80: C = alpha (A B + C), strict fp32, the large tile. From sm_80 on; needs 144
// KiB of shared memory a block, which sm_80, sm_90 and sm_100 have and sm_86, sm_89 and sm_120 have not.
//
// Contract: GemmKernelParams. Panels are K-outer and padded, so nothing is predicated before the epilogue;
// edges of C are handled there; without accumulate C is not read. Each element is summed over k in order, one
// FMA a term, from +0.
//
// Picture: block 128 x 256 = 2 x 4 warps of 64 x 64; lanes 8 x 4, each 8 x 16 outputs (simt_tile.cuh).
//
// Resources: 256 threads, 147456 bytes of shared memory, one block an SM (two warps a scheduler), at most 255
// registers and no spills (a test reads the compiler's report).
//
// Stages: three of 32 steps, filled by all threads with cp.async; barriers as told in simt_cp_async.cuh.
//
// Bound: FMA issue. A step is 128 FMA against 6 shared loads of 16 bytes a thread; the loads of all 8 warps
// take 96 of the 256 cycles that their FMAs take. Global traffic a block and step is 1.5 KiB for 65536 FLOP:
// at 60 TFLOP/s that is 1.4 TB/s, which the L2 serves.
//
// Idea of the thread tile with quads apart, register double buffering and a shared-memory ring: common to
// open SIMT GEMMs (CUTLASS, MaxAs).
//
// Measured on an H200 with CUDA 13.0, square products, check_kernels --no-check --bench
// (bench/results/2026-11-30-kernels.md): n = 512 3.0, 1024 12.2, 2048 46.3, 4096 53.0, 8192 53.8 TFLOP/s;
// 0.30, 0.36, 0.92, 1.03, 1.01 of cuBLAS 13.
//
// Tried and dropped, in the same run: the same tile with four stages that bulk copies fill and mbarriers
// guard (no block barrier in the loop), 49.4 TFLOP/s at n = 8192: eight math warps issue the copies
// themselves, since a ninth warp caps all at 168 registers, which spills; that with a loop body of 4 steps of
// k instead of 32, 50.1: it is not the fetching of instructions.
// In another run (bench/results/2026-11-30-fp32-candidates.md; this loop 53.6, cuBLAS 53.4): a loop body of
// 16 steps 53.3, of 8 52.4 (loop overhead); stages of 64 steps 23.7 (a body of 140 KiB leaves the instruction
// cache); FMAs along rows 52.8 (twice the register-bank conflicts), in quads 51.0; fragments two steps
// ahead 53.0; 128 x 128 by 128 threads, two blocks an SM, 53.1; by 256 threads of 8 x 8, 52.1.
#include "kernels/sgemm_fp32_128x256x32_s3_sm80.hpp"
#include "kernels/simt_cp_async.cuh"

namespace gemmhoist::kernels {

struct Tile128x256x32 {
  static constexpr const KernelDescriptor& kFacts = descriptor_sgemm_fp32_128x256x32_s3_sm80;
  using Type = SimtTile<kFacts.tile_m, kFacts.tile_n, kFacts.tile_k, kFacts.stages, kFacts.threads, 8, 16>;
  static_assert(Type::kSharedBytes == kFacts.shared_bytes);
  // 16 tiles down by 8 across are as high as wide, and about one wave of an H200 (132 SMs).
  static constexpr std::uint32_t kGroup = 16;
};

}  // namespace gemmhoist::kernels

extern "C" __global__ void __launch_bounds__(256, 1)
    sgemm_fp32_128x256x32_s3_sm80(const __grid_constant__ gemmhoist::GemmKernelParams params) {
  using Tile = gemmhoist::kernels::Tile128x256x32;
  gemmhoist::kernels::gemm_cp_async<Tile::Type>(params, Tile::kGroup);
}
