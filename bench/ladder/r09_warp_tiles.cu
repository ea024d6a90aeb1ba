// warp_tiles: the same, but a warp's threads make a tile of 64 x 32 instead of 8 x 128 strips: a step then
// reads 96 different floats a warp from shared memory instead of 136. Lanes are ordered so that each half of
// a warp reads every bank once (src/kernels/simt_tile.cuh tells why).
#include "bench/ladder/ring.cuh"

extern "C" __global__ void __launch_bounds__(256, 2)
    warp_tiles(const __grid_constant__ gemmhoist::ladder::Params p) {
  using namespace gemmhoist::ladder;
  extern __shared__ float4 memory[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int lane_row = lane >> 1 & 7, lane_col = (lane & 1) | (lane >> 4 << 1);
  const int y = warp % 2 * 64 + lane_row * 4, x = warp / 2 * 32 + lane_col * 4;
  const Ring ring{p, reinterpret_cast<float*>(memory), static_cast<int>(blockIdx.y) * Ring::kTile,
                  static_cast<int>(blockIdx.x) * Ring::kTile};
  Sums sums;
  multiply<32, 16>(ring, y, x, sums);
  sums.store(p, ring.row0 + y, 32, ring.col0 + x, 16);
}
