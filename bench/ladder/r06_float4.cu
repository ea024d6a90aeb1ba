// float4: all reads, of global and of shared memory, are 16 bytes wide: a quarter of the load instructions.
// A's tile is turned round on its way, so that the rows of a step of k are neighbours.
#include "bench/ladder/quads.cuh"

extern "C" __global__ void __launch_bounds__(256)
    vector_loads(const __grid_constant__ gemmhoist::ladder::Params p) {
  using namespace gemmhoist::ladder;
  constexpr int kTile = 128, kDepth = 8, kApart = 64, kPitch = kTile + 4;
  __shared__ __align__(16) float a[kDepth][kPitch];
  __shared__ __align__(16) float b[kDepth][kTile];
  const int thread = threadIdx.x, x = thread % 16 * 4, y = thread / 16 * 4;
  const int row0 = blockIdx.y * kTile, col0 = blockIdx.x * kTile;
  const int a_row = thread / 2, a_k = thread % 2 * 4, b_k = thread / 32, b_col = thread % 32 * 4;
  Sums sums;
  for (int k0 = 0; k0 < p.k; k0 += kDepth) {
    const float4 v = load4(p.a, p.m, p.k, row0 + a_row, k0 + a_k);
    a[a_k][a_row] = v.x, a[a_k + 1][a_row] = v.y, a[a_k + 2][a_row] = v.z, a[a_k + 3][a_row] = v.w;
    *reinterpret_cast<float4*>(&b[b_k][b_col]) = load4(p.b, p.k, p.n, k0 + b_k, col0 + b_col);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      Fragment fragment;
      fragment.load(&a[i][y], kApart, &b[i][x], kApart);
      sums.add(fragment);
    }
    __syncthreads();
  }
  sums.store(p, row0 + y, kApart, col0 + x, kApart);
}
