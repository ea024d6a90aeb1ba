// thread_4x4, thread_8x8: a thread makes a square of C. Of e rows and e columns it reads 2 e floats for e * e
// FMAs: half a float an FMA at 4, a quarter at 8. The squares' elements lie 16 apart, so that neighbouring
// lanes read neighbouring floats.
#include "bench/ladder/global.cuh"

namespace gemmhoist::ladder {

template <int edge, int depth>
__device__ void thread_tile(const Params& p) {
  constexpr int kThreads = 256, kAcross = 16, kTile = kAcross * edge;
  __shared__ float a[depth][kTile + 4], b[depth][kTile];
  const int thread = threadIdx.x, x = thread % kAcross, y = thread / kAcross;
  const int row0 = blockIdx.y * kTile, col0 = blockIdx.x * kTile;
  float sum[edge][edge] = {};
  for (int k0 = 0; k0 < p.k; k0 += depth) {
    for (int i = thread; i < kTile * depth; i += kThreads)
      a[i % depth][i / depth] = load(p.a, p.m, p.k, row0 + i / depth, k0 + i % depth);
    for (int i = thread; i < kTile * depth; i += kThreads)
      b[i / kTile][i % kTile] = load(p.b, p.k, p.n, k0 + i / kTile, col0 + i % kTile);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < depth; ++i) {
      float a_value[edge], b_value[edge];
#pragma unroll
      for (int e = 0; e < edge; ++e) a_value[e] = a[i][y + e * kAcross], b_value[e] = b[i][x + e * kAcross];
#pragma unroll
      for (int r = 0; r < edge; ++r)
#pragma unroll
        for (int c = 0; c < edge; ++c) sum[r][c] = fmaf(a_value[r], b_value[c], sum[r][c]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < edge; ++r)
#pragma unroll
    for (int c = 0; c < edge; ++c)
      store(p.c, p.m, p.n, row0 + y + r * kAcross, col0 + x + c * kAcross, sum[r][c]);
}

}  // namespace gemmhoist::ladder

extern "C" __global__ void __launch_bounds__(256)
    thread_4x4(const __grid_constant__ gemmhoist::ladder::Params p) {
  gemmhoist::ladder::thread_tile<4, 16>(p);
}

extern "C" __global__ void __launch_bounds__(256)
    thread_8x8(const __grid_constant__ gemmhoist::ladder::Params p) {
  gemmhoist::ladder::thread_tile<8, 8>(p);
}
