// sgemm_fp32_16x16x1_s1_sm75: C = alpha (A B + C), strict fp32, one thread an element: the plain reference
// that the other kernels are compared with where a host reference would take too long. From sm_75 on. Its
// role keeps it out of plans.
//
// Contract: GemmKernelParams; reads no padding of the panels at all; without accumulate C is not read. Each
// element is summed over k in order, one FMA a term, from +0: bit for bit what the other fp32 kernels make.
//
// Picture: block 16 x 16 elements, threads down the rows first, so that loads of A and stores of C coalesce.
//
// Resources: 256 threads, no shared memory. Bound: the L1's bandwidth; two loads an FMA. Not timed: it only
// checks.
#include "kernels/sgemm_fp32_16x16x1_s1_sm75.hpp"
#include "kernels/tile_order.hpp"

extern "C" __global__ void __launch_bounds__(256, 4)
    sgemm_fp32_16x16x1_s1_sm75(const __grid_constant__ gemmhoist::GemmKernelParams params) {
  using namespace gemmhoist::kernels;
  constexpr int kTileM = descriptor_sgemm_fp32_16x16x1_s1_sm75.tile_m;
  constexpr int kTileN = descriptor_sgemm_fp32_16x16x1_s1_sm75.tile_n;
  static_assert(kTileM * kTileN == descriptor_sgemm_fp32_16x16x1_s1_sm75.threads);

  const TilePosition tile =
      tile_of_block(blockIdx.x, tiles_over(params.m, kTileM), tiles_over(params.n, kTileN), 16);
  const std::int64_t row = static_cast<std::int64_t>(tile.row) * kTileM + threadIdx.x % kTileM;
  const std::int64_t col = static_cast<std::int64_t>(tile.col) * kTileN + threadIdx.x / kTileM;
  if (row >= params.m || col >= params.n) return;

  const float* a = params.a + row;
  const float* b = params.b + col;
  float sum = 0.0f;
  for (int p = 0; p < params.k; ++p) {
    sum = fmaf(*a, *b, sum);
    a += params.lda;
    b += params.ldb;
  }
  float* const c = params.c + row + col * params.ldc;
  *c = params.alpha * (sum + (params.accumulate != 0 ? *c : 0.0f));
}
