// sgemm_fp32_64x64x16_s3_sm80: C = alpha (A B + C), strict fp32, the small tile: thin strips, small products
// and the tail of a large one, where larger tiles would leave SMs without work. From sm_80 on.
//
// Contract: GemmKernelParams. Panels are K-outer and padded, so nothing is predicated before the epilogue;
// edges of C are handled there; without accumulate C is not read. Each element is summed over k in order, one
// FMA a term, from +0.
//
// Picture: block 64 x 64 = 1 x 4 warps of 64 x 16; lanes 8 x 4, each 8 x 4 outputs (simt_tile.cuh). More,
// smaller threads than the FMA rate alone would ask for: with one block an SM all four schedulers have a
// warp.
//
// Resources: 128 threads, 24576 bytes of shared memory, at most 128 registers and no spills (a test reads the
// compiler's report), four blocks an SM even in 100 KiB of shared memory.
//
// Stages: three of 16 steps, filled by all threads with cp.async; barriers as told in simt_cp_async.cuh.
//
// Bound: FMA issue, closely followed by shared loads: a step is 32 FMA against 3 loads of 16 bytes a thread,
// and the loads of four warps take 24 of the 32 cycles that their FMAs take.
//
// Measured on an H200 with CUDA 13.0, square products, check_kernels --no-check --bench
// (bench/results/2026-11-30-kernels.md): n = 512 12.9, 1024 39.0, 2048 45.1, 4096 46.5, 8192 47.9 TFLOP/s;
// 1.30, 1.14, 0.89, 0.90, 0.90 of cuBLAS 13.
#include "kernels/sgemm_fp32_64x64x16_s3_sm80.hpp"
#include "kernels/simt_cp_async.cuh"

namespace gemmhoist::kernels {

struct Tile64x64x16 {
  static constexpr const KernelDescriptor& kFacts = descriptor_sgemm_fp32_64x64x16_s3_sm80;
  using Type = SimtTile<kFacts.tile_m, kFacts.tile_n, kFacts.tile_k, kFacts.stages, kFacts.threads, 8, 4>;
  static_assert(Type::kSharedBytes == kFacts.shared_bytes);
  // Square tiles, 528 a wave on an H200: 24 down by 22 across.
  static constexpr std::uint32_t kGroup = 24;
};

}  // namespace gemmhoist::kernels

extern "C" __global__ void __launch_bounds__(128, 4)
    sgemm_fp32_64x64x16_s3_sm80(const __grid_constant__ gemmhoist::GemmKernelParams params) {
  using Tile = gemmhoist::kernels::Tile64x64x16;
  gemmhoist::kernels::gemm_cp_async<Tile::Type>(params, Tile::kGroup);
}
