// What rungs are measured against: the FFMA limit of the chip, and a product in fp64.
#include <cstdint>

#include "bench/ladder/check.hpp"

// ffma_limit: 16 independent chains of FMAs a thread and nothing else. `params.k` rounds of 16 x 16; the
// result is stored where `params.m` asks, which it never does: but the compiler cannot know.
extern "C" __global__ void __launch_bounds__(256)
    ffma_limit(const __grid_constant__ gemmhoist::ladder::Params p) {
  float sum[16];
#pragma unroll
  for (int c = 0; c < 16; ++c) sum[c] = static_cast<float>(threadIdx.x + c);
  const float a = p.a[0], b = p.a[1];
  for (int round = 0; round < p.k; ++round) {
#pragma unroll
    for (int i = 0; i < 16; ++i)
#pragma unroll
      for (int c = 0; c < 16; ++c) sum[c] = fmaf(sum[c], a, b);
  }
  float total = 0.0f;
#pragma unroll
  for (int c = 0; c < 16; ++c) total += sum[c];
  if (p.m != 0) p.c[blockIdx.x * 256 + threadIdx.x] = total;
}

// The product and the product of magnitudes, both in fp64.
extern "C" __global__ void __launch_bounds__(256)
    reference_fp64(const __grid_constant__ gemmhoist::ladder::ReferenceParams p) {
  __shared__ double a[16][17], b[16][17];
  const int y = threadIdx.x / 16, x = threadIdx.x % 16;
  const int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
  double sum = 0, magnitude = 0;
  for (int k0 = 0; k0 < p.k; k0 += 16) {
    const bool a_inside = row < p.m && k0 + x < p.k, b_inside = k0 + y < p.k && col < p.n;
    a[y][x] = a_inside ? p.a[row * p.a_row + (k0 + x) * p.a_step] : 0.0f;
    b[y][x] = b_inside ? p.b[(k0 + y) * p.b_step + col * p.b_col] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const double product = a[y][i] * b[i][x];
      sum += product;
      magnitude += fabs(product);
    }
    __syncthreads();
  }
  if (row >= p.m || col >= p.n) return;
  p.sum[static_cast<std::int64_t>(row) * p.n + col] = sum;
  p.magnitude[static_cast<std::int64_t>(row) * p.n + col] = magnitude;
}

// Counts elements of C outside (k + 3) 2^-24 |A||B|; NaN is outside.
extern "C" __global__ void __launch_bounds__(256)
    count_wrong(const __grid_constant__ gemmhoist::ladder::CompareParams p) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * 256;
  unsigned wrong = 0;
  for (std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x; i < p.count; i += stride) {
    const double bound = (p.k + 3) * 5.9604644775390625e-8 * p.magnitude[i] + 1e-42;
    if (!(fabs(p.c[i] - p.sum[i]) <= bound)) ++wrong;
  }
  if (wrong != 0) atomicAdd(p.wrong, wrong);
}
