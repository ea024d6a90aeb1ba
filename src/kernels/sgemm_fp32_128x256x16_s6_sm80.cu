// sgemm_fp32_128x256x16_s6_sm80: C = alpha (A B + C), strict fp32, the large tile. From sm_80 on; needs 144
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
// Stages: six of 16 steps, filled by all threads with cp.async in pairs; barriers as told in
// simt_cp_async.cuh. The loop body is a stage, 34 KiB of code: one of 70 KiB waits for instructions.
//
// Fragments: 48 registers of their own beside the 128 sums, so that each load is a whole step ahead of its
// use (held_load.cuh). Without, ptxas puts all six loads of a step right before it.
//
// Bound: FMA issue. A step is 128 FMA against 6 shared loads of 16 bytes a thread; the loads of all 8 warps
// take 96 of the 256 cycles that their FMAs take. Of the loop's 2206 instructions 2048 are FMAs (cuobjdump
// --dump-sass of sm_90a), and 90.9 % of the issue slots are used (n = 4096, scripts/profile-kernel,
// bench/results/2026-11-30-large-kernel.md). Global traffic a block and step is 1.5 KiB for 65536 FLOP: at 60
// TFLOP/s that is 1.4 TB/s, which the L2 serves. The 2048 tiles of n = 8192 are 15.5 waves of 132 SMs: 3 %
// are lost.
//
// Idea of the thread tile with quads apart, register double buffering and a shared-memory ring: common to
// open SIMT GEMMs (CUTLASS, MaxAs).
//
// Measured on an H200 with CUDA 13.0, square products from K-outer panels, check_kernels --no-check --bench:
// n = 4096 54.3, 8192 54.8 TFLOP/s; 1.05 and 1.03 of cuBLAS 13 (bench/results/2026-11-30-large-kernel.md);
// n = 512 3.1, 1024 12.9, 2048 53.0; 0.25, 0.36, 1.04 of cuBLAS (2026-11-30-fp32-candidates-2.md, run D). The
// forerunner, three stages of 32 steps with fragments left to the compiler: 53.1 and 53.8 at 4096 and 8192
// beside this loop's 54.3 and 54.8 (run C of that page).
//
// Tried and dropped (run B and C of that page, contestants of a scratch program): a warpgroup that copies
// whole rows by cp.async.bulk beside two that multiply, with registers moved by setmaxnreg, 53.3 to 55.2 at n
// = 8192 but 51.5 to 53.3 at 4096; that with one warp whose 32 lanes copy, 37 to 43 (run A; bulk copies of
// divergent lanes become a loop that takes a scheduler's issue slots); held loads there, 54.6 and 53.6. FMAs
// in blocks of 2 x 2, which read 1.5 registers an FMA instead of 1.9: the same. Copies all at once, 54.6; one
// by one, 54.3. An older run (2026-11-30-fp32-candidates.md, a scratch program, too) of the forerunner:
// stages of 64 steps 23.7 (the body leaves the instruction cache); FMAs along rows 52.8 (twice the
// register-bank conflicts); 128 x 128 by 128 threads, two blocks an SM, 53.1; by 256 threads of 8 x 8, 52.1;
// the forerunner itself 53.6. Loads set apart by ptxas -O1, by labels or by registers used in place, 51.9 to
// 54.7 (2026-11-30-fp32-candidates-3.md, scratch programs).
#include "kernels/sgemm_fp32_128x256x16_s6_sm80.hpp"
#include "kernels/simt_cp_async.cuh"

namespace gemmhoist::kernels {

struct Tile128x256x16 {
  static constexpr const KernelDescriptor& kFacts = descriptor_sgemm_fp32_128x256x16_s6_sm80;
  using Type = SimtTile<kFacts.tile_m, kFacts.tile_n, kFacts.tile_k, kFacts.stages, kFacts.threads, 8, 16>;
  static_assert(Type::kSharedBytes == kFacts.shared_bytes);
  // 16 tiles down by 8 across are as high as wide, and about one wave of an H200 (132 SMs).
  static constexpr std::uint32_t kGroup = 16;
};

}  // namespace gemmhoist::kernels

extern "C" __global__ void __launch_bounds__(256, 1)
    sgemm_fp32_128x256x16_s6_sm80(const __grid_constant__ gemmhoist::GemmKernelParams params) {
  using Tile = gemmhoist::kernels::Tile128x256x16;
  gemmhoist::kernels::gemm_cp_async<Tile::Type, true>(params, Tile::kGroup);
}
