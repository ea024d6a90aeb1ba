// sgemm_leftover_fp32_128x128x16_s3_sm80: in strict fp32, the tiles of C that a product of images left out.
// From sm_80 on.
//
// Contract: PreparedGemmKernelParams, launched behind the kernel that wrote out_of_range, with the same
// parameters; reads the fp32 panels gemm.a and gemm.b and gives the bits of the fp32 kernels. A block whose
// tile is not marked ends at once: with none marked, a launch is a byte read a tile.
//
// Picture, resources, stages, bound: as sgemm_fp32_128x128x16_s3_sm80, whose main loop it is.
//
// Not timed alone. With no tile marked its launch is in the rows NN to TT of the bf16x6 products
// (bench/results/2026-11-30-tensor-cores.md).
#include "kernels/sgemm_leftover_fp32_128x128x16_s3_sm80.hpp"
#include "kernels/simt_cp_async.cuh"

namespace gemmhoist::kernels {

struct Leftover128x128x16 {
  static constexpr const KernelDescriptor& kFacts = descriptor_sgemm_leftover_fp32_128x128x16_s3_sm80;
  using Type = SimtTile<kFacts.tile_m, kFacts.tile_n, kFacts.tile_k, kFacts.stages, kFacts.threads, 8, 16>;
  static_assert(Type::kSharedBytes == kFacts.shared_bytes);
  static_assert(kImageK % Type::kTileK == 0, "gemm.k is a multiple of kImageK");
  static constexpr std::uint32_t kGroup = 16;
};

}  // namespace gemmhoist::kernels

extern "C" __global__ void __launch_bounds__(128, 2) sgemm_leftover_fp32_128x128x16_s3_sm80(
    const __grid_constant__ gemmhoist::PreparedGemmKernelParams params) {
  using namespace gemmhoist::kernels;
  using Tile = Leftover128x128x16;
  const std::uint32_t tile_rows = tiles_over(params.gemm.m, Tile::Type::kTileM);
  const TilePosition tile =
      tile_of_block(blockIdx.x, tile_rows, tiles_over(params.gemm.n, Tile::Type::kTileN), Tile::kGroup);
  if (params.out_of_range[tile.row + static_cast<std::int64_t>(tile.col) * tile_rows] == 0) return;
  gemm_cp_async<Tile::Type>(params.gemm, Tile::kGroup);
}
