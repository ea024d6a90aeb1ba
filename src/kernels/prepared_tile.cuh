// What kernels that multiply images have in common: leaving out tiles that are out of range, and writing C.
#pragma once

#include "core/kernel_descriptor.hpp"
#include "kernels/magnitude_range.hpp"
#include "kernels/tile_order.hpp"
#include "kernels/warp.cuh"

namespace gemmhoist::kernels {

// In shared memory: magnitudes of the tile's rows of A and columns of B.
struct TileRange {
  std::uint32_t least[2], greatest[2];

  __device__ void clear() {
    for (int operand = 0; operand < 2; ++operand) {
      least[operand] = kNoMagnitude.least;
      greatest[operand] = kNoMagnitude.greatest;
    }
  }
};

// Whether the tile is out of range, over all of k. Called by all threads, behind a barrier after clear().
template <int threads>
__device__ __forceinline__ bool out_of_range(const PreparedGemmKernelParams& params, TilePosition tile,
                                             TileRange* shared) {
  const int blocks = params.gemm.k / kImageK;
  const MagnitudeRange* const ranges[2] = {params.a_ranges + tile.row * params.a_unit_pitch,
                                           params.b_ranges + tile.col * params.b_unit_pitch};
#pragma unroll
  for (int operand = 0; operand < 2; ++operand) {
    MagnitudeRange range = kNoMagnitude;
    for (int q = static_cast<int>(threadIdx.x); q < blocks; q += threads) {
      const MagnitudeRange unit = ranges[operand][q];
      range.least = unit.least < range.least ? unit.least : range.least;
      range.greatest = unit.greatest > range.greatest ? unit.greatest : range.greatest;
    }
    range.least = warp_least(range.least);
    range.greatest = warp_greatest(range.greatest);
    if (threadIdx.x % 32 == 0) {
      atomicMin(shared->least + operand, range.least);
      atomicMax(shared->greatest + operand, range.greatest);
    }
  }
  __syncthreads();
  return !bf16x6_in_range({shared->least[0], shared->greatest[0]}, {shared->least[1], shared->greatest[1]},
                          params.gemm.k);
}

// C of a warp that makes 16 columns: alpha (sum + C where asked), for rows from row0 and columns from col0
// on. A thread's sums are those of a 16 x 8 product, columns of C being its rows, for one eight of C's rows
// after another: sum[4 g + 2 h + x] is row 8 g + 2 (lane % 4) + x, column 8 h + lane / 4. C and ldc are
// multiples of 16 bytes and rows come in even pairs, so that a pair is 8-byte aligned.
template <int count>
__device__ __forceinline__ void store_sums(const float (&sum)[count], const GemmKernelParams& params,
                                           std::int64_t row0, std::int64_t col0) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t row_first = row0 + lane % 4 * 2;
  const bool accumulate = params.accumulate != 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t col = col0 + half * 8 + lane / 4;
    if (col >= params.n) continue;
    float* const column = params.c + row_first + col * params.ldc;
    const std::int64_t rows = params.m - row_first;  // left of the column
#pragma unroll
    for (int g = 0; g < count / 4; ++g) {
      const float x = sum[4 * g + 2 * half], y = sum[4 * g + 2 * half + 1];
      float* const at = column + 8 * g;
      if (8 * g + 1 < rows) {
        float2 old = make_float2(0.0f, 0.0f);
        if (accumulate) old = *reinterpret_cast<const float2*>(at);
        *reinterpret_cast<float2*>(at) = make_float2(params.alpha * (x + old.x), params.alpha * (y + old.y));
      } else if (8 * g < rows) {
        *at = params.alpha * (x + (accumulate ? *at : 0.0f));
      }
    }
  }
}

}  // namespace gemmhoist::kernels
