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

// Where a warp's sums go: C for rows from row0 and columns from col0 on. A thread's sums are those of a 16 x
// 8 product, columns of C being its rows, for one eight of C's rows after another: sum[4 g + 2 h + x] is row
// 8 g + 2 (lane % 4) + x, column 8 h + lane / 4. C and ldc are multiples of 16 bytes and rows come in even
// pairs, so that a pair is 8-byte aligned.
//
// Sums of a long k come in several times, for accuracy: n additions of the same size each round by up to half
// a unit in the last place of all that was added before, so that two levels of sqrt(n) additions lose far
// less than one of n. Registers have no room for a second level, and C is at hand: until the last time it
// holds what has been summed, unscaled.
struct WarpC {
  const GemmKernelParams& params;
  std::int64_t row0, col0;
  bool holds;  // something to add to; without accumulate C is not read before it is written

  __device__ WarpC(const GemmKernelParams& gemm, std::int64_t row, std::int64_t col)
      : params(gemm), row0(row), col0(col), holds(gemm.accumulate != 0) {}

  // C = alpha (sum + C where it holds something), for 16 columns `cols` further on.
  template <int count>
  __device__ __forceinline__ void put(const float (&sum)[count], float alpha, int cols = 0) const {
    // Loads go out together: one at a time, each waiting for memory behind the store before it, they cost a
    // sixth of the kernel's rate. More than eight do not fit the registers.
    constexpr int kBatch = count / 4 < 8 ? count / 4 : 8;
    static_assert(count % (4 * kBatch) == 0);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t row_first = row0 + lane % 4 * 2;
    const std::int64_t rows = params.m - row_first;  // left of the column
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t col = col0 + cols + half * 8 + lane / 4;
      if (col >= params.n) continue;
      float* const column = params.c + row_first + col * params.ldc;
#pragma unroll
      for (int batch = 0; batch < count / 4; batch += kBatch) {
        float2 old[kBatch];
#pragma unroll
        for (int b = 0; b < kBatch; ++b) {
          const int row = 8 * (batch + b);
          old[b] = make_float2(0.0f, 0.0f);
          if (holds && row + 1 < rows) old[b] = *reinterpret_cast<const float2*>(column + row);
          if (holds && row + 1 == rows) old[b].x = column[row];
        }
#pragma unroll
        for (int b = 0; b < kBatch; ++b) {
          const int row = 8 * (batch + b), at = 4 * (batch + b) + 2 * half;
          const float x = alpha * (sum[at] + old[b].x), y = alpha * (sum[at + 1] + old[b].y);
          if (row + 1 < rows)
            *reinterpret_cast<float2*>(column + row) = make_float2(x, y);
          else if (row < rows)
            column[row] = x;
        }
      }
    }
  }
};

}  // namespace gemmhoist::kernels
