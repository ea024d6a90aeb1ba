// naive: a thread makes one element of C, straight from global memory.
//
// For every FMA a thread reads two floats. Lanes of a warp are neighbours in a row of C: what they read of B
// is one line, and of A one address. The caches serve nearly all of it; their rate is the bound.
#include "bench/ladder/global.cuh"

extern "C" __global__ void __launch_bounds__(256) naive(const __grid_constant__ gemmhoist::ladder::Params p) {
  using namespace gemmhoist::ladder;
  const int row = blockIdx.y * 8 + threadIdx.x / 32, col = blockIdx.x * 32 + threadIdx.x % 32;
  if (row >= p.m || col >= p.n) return;
  const float* const a = p.a + static_cast<long long>(row) * p.k;
  const float* b = p.b + col;
  float sum = 0.0f;
  for (int i = 0; i < p.k; ++i, b += p.n) sum = fmaf(a[i], *b, sum);
  store(p.c, p.m, p.n, row, col, sum);
}
