// Tile order: which tile of C a block makes, so that the blocks that run together share panels in the L2.
//
// Blocks start in the order of their index. Row by row over a wide C, one wave of 132 blocks would read one
// strip of A and all of B. Instead `group` tile rows are walked column by column: a wave then covers a patch
// about as high as wide, and reads the least of both panels for the tiles that it makes.
#pragma once

#include <cstdint>

#ifndef __CUDACC__
#define GEMMHOIST_HOST_DEVICE
#else
#define GEMMHOIST_HOST_DEVICE __host__ __device__
#endif

namespace gemmhoist::kernels {

struct TilePosition {
  std::uint32_t row, col;  // in tiles
};

// `extent` >= 1. Never overflows, unlike (extent + tile - 1) / tile.
GEMMHOIST_HOST_DEVICE constexpr std::uint32_t tiles_over(std::int32_t extent, std::int32_t tile) noexcept {
  return static_cast<std::uint32_t>((extent - 1) / tile) + 1;
}

// The caller guarantees that tile_rows * tile_cols fits 31 bits (launch_shape refuses larger grids).
GEMMHOIST_HOST_DEVICE constexpr TilePosition tile_of_block(std::uint32_t block, std::uint32_t tile_rows,
                                                           std::uint32_t tile_cols,
                                                           std::uint32_t group) noexcept {
  // Where a group would be larger than the whole, its size could overflow: one group then does.
  const std::uint32_t full_group = group < tile_rows ? group : tile_rows;
  const std::uint32_t blocks_a_group = full_group * tile_cols;
  const std::uint32_t first_row = block / blocks_a_group * full_group;
  const std::uint32_t rest = block % blocks_a_group;
  const std::uint32_t rows = tile_rows - first_row < full_group ? tile_rows - first_row : full_group;
  return {first_row + rest % rows, rest / rows};
}

}  // namespace gemmhoist::kernels
