// register_double_buffer: while a tile is multiplied, the next one is on its way from global memory to
// registers, and the next step's fragment on its way from shared memory. Two tiles in shared memory: one
// barrier a tile.
#include "bench/ladder/quads.cuh"

extern "C" __global__ void __launch_bounds__(256, 2)
    register_double_buffer(const __grid_constant__ gemmhoist::ladder::Params p) {
  using namespace gemmhoist::ladder;
  constexpr int kTile = 128, kDepth = 8, kApart = 64, kPitch = kTile + 4;
  __shared__ __align__(16) float a[2][kDepth][kPitch];
  __shared__ __align__(16) float b[2][kDepth][kTile];
  const int thread = threadIdx.x, x = thread % 16 * 4, y = thread / 16 * 4;
  const int row0 = blockIdx.y * kTile, col0 = blockIdx.x * kTile;
  const int a_row = thread / 2, a_k = thread % 2 * 4, b_k = thread / 32, b_col = thread % 32 * 4;
  float4 next_a, next_b;
  const auto fetch = [&](int k0) {
    next_a = load4(p.a, p.m, p.k, row0 + a_row, k0 + a_k);
    next_b = load4(p.b, p.k, p.n, k0 + b_k, col0 + b_col);
  };
  const auto put = [&](int to) {
    a[to][a_k][a_row] = next_a.x, a[to][a_k + 1][a_row] = next_a.y;
    a[to][a_k + 2][a_row] = next_a.z, a[to][a_k + 3][a_row] = next_a.w;
    *reinterpret_cast<float4*>(&b[to][b_k][b_col]) = next_b;
  };
  fetch(0);
  put(0);
  __syncthreads();
  Sums sums;
  Fragment fragment[2];
  fragment[0].load(&a[0][0][y], kApart, &b[0][0][x], kApart);
  int now = 0;
  for (int k0 = 0; k0 < p.k; k0 += kDepth) {
    const bool more = k0 + kDepth < p.k;
    if (more) fetch(k0 + kDepth);
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      if (i == kDepth - 1 && more) {
        put(1 - now);
        __syncthreads();
        now = 1 - now;
      }
      const int step = (i + 1) % kDepth;  // after the last tile: read, and never used
      fragment[(i + 1) % 2].load(&a[now][step][y], kApart, &b[now][step][x], kApart);
      sums.add(fragment[i % 2]);
    }
  }
  sums.store(p, row0 + y, kApart, col0 + x, kApart);
}
