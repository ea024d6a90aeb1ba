// sgemm_fp32_128x128x16_s3_sm90: C = alpha (A B + C), strict fp32, the medium tile, brought by the copy
// engine. From sm_90 on.
//
// Contract: GemmKernelParams. Panels are K-outer and padded, so nothing is predicated before the epilogue;
// edges of C are handled there; without accumulate C is not read. Each element is summed over k in order, one
// FMA a term, from +0.
//
// Picture: block 128 x 128 = 2 x 2 warps of 64 x 64; lanes 8 x 4, each 8 x 16 outputs (simt_tile.cuh).
//
// Resources: 128 threads, 49200 bytes of shared memory, two blocks an SM (two warps a scheduler), at most 255
// registers and no spills (a test reads the compiler's report).
//
// Stages: three of 16 steps, filled by bulk copies of whole rows; full and empty mbarriers as told in
// simt_bulk.cuh.
//
// Bound: FMA issue, as the cp.async kernel of the same tile.
#include "kernels/sgemm_fp32_128x128x16_s3_sm90.hpp"
#include "kernels/simt_bulk.cuh"

namespace gemmhoist::kernels {

struct Tile128x128x16Bulk {
  static constexpr const KernelDescriptor& kFacts = descriptor_sgemm_fp32_128x128x16_s3_sm90;
  using Type = SimtTile<kFacts.tile_m, kFacts.tile_n, kFacts.tile_k, kFacts.stages, kFacts.threads, 8, 16>;
  static_assert(BulkRing<Type>::kSharedBytes == kFacts.shared_bytes);
  // Square tiles, 264 a wave on an H200: 16 down by 16 across.
  static constexpr std::uint32_t kGroup = 16;
};

}  // namespace gemmhoist::kernels

extern "C" __global__ void __launch_bounds__(128, 2)
    sgemm_fp32_128x128x16_s3_sm90(const __grid_constant__ gemmhoist::GemmKernelParams params) {
  using Tile = gemmhoist::kernels::Tile128x128x16Bulk;
  gemmhoist::kernels::gemm_bulk<Tile::Type>(params, Tile::kGroup);
}
