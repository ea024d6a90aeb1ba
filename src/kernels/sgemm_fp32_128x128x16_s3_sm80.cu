// sgemm_fp32_128x128x16_s3_sm80: C = alpha (A B + C), strict fp32, the medium tile. From sm_80 on, and the
// largest tile that fits the 100 KiB of shared memory of sm_86, sm_89 and sm_120, twice an SM.
//
// Contract: GemmKernelParams. Panels are K-outer and padded, so nothing is predicated before the epilogue;
// edges of C are handled there; without accumulate C is not read. Each element is summed over k in order, one
// FMA a term, from +0.
//
// Picture: block 128 x 128 = 2 x 2 warps of 64 x 64; lanes 8 x 4, each 8 x 16 outputs (simt_tile.cuh): the
// large kernel's warp in a block of half the width. Two blocks an SM meet their barriers apart, so one's FMAs
// fill the other's waits.
//
// Resources: 128 threads, 49152 bytes of shared memory, two blocks an SM (two warps a scheduler), at most 255
// registers and no spills (a test reads the compiler's report).
//
// Stages: three of 16 steps, filled by all threads with cp.async; barriers as told in simt_cp_async.cuh.
//
// Bound: FMA issue; a step as in the large kernel. Global traffic a block and step is 1 KiB for 32768 FLOP, a
// third more for each FLOP than the large tile's.
//
// Measured on an H200 with CUDA 13.0, square products, check_kernels --no-check --bench
// (bench/results/2026-11-30-kernels.md): n = 512 3.5, 1024 13.6, 2048 50.1, 4096 51.7, 8192 52.1 TFLOP/s;
// 0.35, 0.40, 0.99, 1.01, 0.98 of cuBLAS 13.
//
// Tried and dropped, in the same run: panels by bulk copies and mbarriers, 47.0 TFLOP/s at n = 2048 and 48.5
// at 8192.
#include "kernels/sgemm_fp32_128x128x16_s3_sm80.hpp"
#include "kernels/simt_cp_async.cuh"

namespace gemmhoist::kernels {

struct Tile128x128x16 {
  static constexpr const KernelDescriptor& kFacts = descriptor_sgemm_fp32_128x128x16_s3_sm80;
  using Type = SimtTile<kFacts.tile_m, kFacts.tile_n, kFacts.tile_k, kFacts.stages, kFacts.threads, 8, 16>;
  static_assert(Type::kSharedBytes == kFacts.shared_bytes);
  // Square tiles, 264 a wave on an H200: 16 down by 16 across.
  static constexpr std::uint32_t kGroup = 16;
};

}  // namespace gemmhoist::kernels

extern "C" __global__ void __launch_bounds__(128, 2)
    sgemm_fp32_128x128x16_s3_sm80(const __grid_constant__ gemmhoist::GemmKernelParams params) {
  using Tile = gemmhoist::kernels::Tile128x128x16;
  gemmhoist::kernels::gemm_cp_async<Tile::Type>(params, Tile::kGroup);
}
