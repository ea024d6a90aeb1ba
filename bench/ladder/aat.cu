// C = A A^T (m x m), one element a thread: the lesson of banks. A warp's lanes are neighbours along a row of
// C, so what they need of the second operand is one element each of many rows of A.
#include "bench/ladder/global.cuh"

namespace gemmhoist::ladder {

// Rows come in coalesced, but lane x then reads other[x][i]: a step of one row of shared memory from lane to
// lane. Without padding 16 lanes share 2 banks; with a float of padding each has its own.
template <int padding>
__device__ void aat_tile(const Params& p) {
  constexpr int kTile = 16;
  __shared__ float own[kTile][kTile + padding], other[kTile][kTile + padding];
  const int y = threadIdx.x / kTile, x = threadIdx.x % kTile;
  const int row0 = blockIdx.y * kTile, col0 = blockIdx.x * kTile;
  float sum = 0.0f;
  for (int k0 = 0; k0 < p.k; k0 += kTile) {
    own[y][x] = load(p.a, p.m, p.k, row0 + y, k0 + x);
    other[y][x] = load(p.a, p.m, p.k, col0 + y, k0 + x);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum = fmaf(own[y][i], other[x][i], sum);
    __syncthreads();
  }
  store(p.c, p.m, p.m, row0 + y, col0 + x, sum);
}

}  // namespace gemmhoist::ladder

// Every lane walks along its own row of A: 16 lines a load instruction.
extern "C" __global__ void __launch_bounds__(256)
    aat_direct(const __grid_constant__ gemmhoist::ladder::Params p) {
  using namespace gemmhoist::ladder;
  const int row = blockIdx.y * 16 + threadIdx.x / 16, col = blockIdx.x * 16 + threadIdx.x % 16;
  if (row >= p.m || col >= p.m) return;
  const float* const own = p.a + static_cast<long long>(row) * p.k;
  const float* const other = p.a + static_cast<long long>(col) * p.k;
  float sum = 0.0f;
  for (int i = 0; i < p.k; ++i) sum = fmaf(own[i], other[i], sum);
  store(p.c, p.m, p.m, row, col, sum);
}

extern "C" __global__ void __launch_bounds__(256)
    aat_shared(const __grid_constant__ gemmhoist::ladder::Params p) {
  gemmhoist::ladder::aat_tile<0>(p);
}

extern "C" __global__ void __launch_bounds__(256)
    aat_shared_padded(const __grid_constant__ gemmhoist::ladder::Params p) {
  gemmhoist::ladder::aat_tile<1>(p);
}
