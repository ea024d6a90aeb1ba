// sgemm_fp32_128x256x32_s4_u4_sm90: C = alpha (A B + C), strict fp32, the large tile with a producer warp.
// From sm_90 on; needs 192 KiB of shared memory a block.
//
// Contract: GemmKernelParams. Panels are K-outer and padded, so nothing is predicated before the epilogue;
// edges of C are handled there; without accumulate C is not read. Each element is summed over k in order, one
// FMA a term, from +0.
//
// Picture: block 128 x 256 = 2 x 4 warps of 64 x 64; lanes 8 x 4, each 8 x 16 outputs (simt_tile.cuh).
//
// Resources: 256 threads, 196672 bytes of shared memory, one block an SM, at most 255 registers and no spills
// (a test reads the compiler's report).
//
// Stages: four of 32 steps, filled by bulk copies of whole rows; full and empty mbarriers as told in
// simt_bulk.cuh.
//
// Bound: FMA issue. The loop's body is four steps of k (about 9 KiB of code) instead of a tile's 32 (70 KiB):
// a candidate to see what instruction fetch costs.
#include "kernels/sgemm_fp32_128x256x32_s4_u4_sm90.hpp"
#include "kernels/simt_bulk.cuh"

namespace gemmhoist::kernels {

struct Tile128x256x32BulkUnroll4 {
  static constexpr const KernelDescriptor& kFacts = descriptor_sgemm_fp32_128x256x32_s4_u4_sm90;
  using Type = SimtTile<kFacts.tile_m, kFacts.tile_n, kFacts.tile_k, kFacts.stages, kFacts.threads, 8, 16>;
  static_assert(BulkRing<Type>::kSharedBytes == kFacts.shared_bytes);
  // 16 tiles down by 8 across are as high as wide, and about one wave of an H200 (132 SMs).
  static constexpr std::uint32_t kGroup = 16;
};

}  // namespace gemmhoist::kernels

extern "C" __global__ void __launch_bounds__(256, 1)
    sgemm_fp32_128x256x32_s4_u4_sm90(const __grid_constant__ gemmhoist::GemmKernelParams params) {
  using Tile = gemmhoist::kernels::Tile128x256x32BulkUnroll4;
  gemmhoist::kernels::gemm_bulk<Tile::Type, 4>(params, Tile::kGroup);
}
