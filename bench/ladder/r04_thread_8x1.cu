// thread_8x1: a thread makes eight elements of one column. It keeps a float of B in a register for eight
// FMAs: nine shared reads for eight FMAs instead of sixteen.
#include "bench/ladder/global.cuh"

extern "C" __global__ void __launch_bounds__(512)
    thread_8x1(const __grid_constant__ gemmhoist::ladder::Params p) {
  using namespace gemmhoist::ladder;
  constexpr int kTile = 64, kDepth = 8, kRows = 8;
  __shared__ float a[kTile][kDepth], b[kDepth][kTile];
  const int thread = threadIdx.x, x = thread % kTile, y = thread / kTile;
  const int row0 = blockIdx.y * kTile, col0 = blockIdx.x * kTile;
  float sum[kRows] = {};
  for (int k0 = 0; k0 < p.k; k0 += kDepth) {
    a[thread / kDepth][thread % kDepth] = load(p.a, p.m, p.k, row0 + thread / kDepth, k0 + thread % kDepth);
    b[y][x] = load(p.b, p.k, p.n, k0 + y, col0 + x);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      const float b_value = b[i][x];
#pragma unroll
      for (int r = 0; r < kRows; ++r) sum[r] = fmaf(a[y * kRows + r][i], b_value, sum[r]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) store(p.c, p.m, p.n, row0 + y * kRows + r, col0 + x, sum[r]);
}
