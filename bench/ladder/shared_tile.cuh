// Shared tile: a block brings a tile of A and one of B into shared memory, and every element is then read
// from there `tile` times instead of from global memory. `padding` floats follow each row.
#pragma once

#include "bench/ladder/global.cuh"

namespace gemmhoist::ladder {

template <int tile, int padding>
__device__ void shared_tile(const Params& p) {
  __shared__ float a[tile][tile + padding], b[tile][tile + padding];
  const int y = threadIdx.x / tile, x = threadIdx.x % tile;
  const int row = blockIdx.y * tile + y, col = blockIdx.x * tile + x;
  float sum = 0.0f;
  for (int k0 = 0; k0 < p.k; k0 += tile) {
    a[y][x] = load(p.a, p.m, p.k, row, k0 + x);
    b[y][x] = load(p.b, p.k, p.n, k0 + y, col);
    __syncthreads();  // the tiles are complete
#pragma unroll
    for (int i = 0; i < tile; ++i) sum = fmaf(a[y][i], b[i][x], sum);
    __syncthreads();  // nobody reads them any more
  }
  store(p.c, p.m, p.n, row, col, sum);
}

}  // namespace gemmhoist::ladder
