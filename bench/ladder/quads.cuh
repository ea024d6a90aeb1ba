// Quads: the 8 x 8 outputs of a thread as four 4 x 4 squares, so that all its reads of shared memory are 16
// bytes wide. Its rows are row .. row + 3 and row + apart_m .. row + apart_m + 3, its columns alike.
#pragma once

#include "bench/ladder/global.cuh"

namespace gemmhoist::ladder {

struct Fragment {
  float a[8], b[8];

  // Of one step of k: the thread's first quads in A's and in B's row.
  __device__ void load(const float* a_row, int apart_m, const float* b_row, int apart_n) {
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      const float4 x = *reinterpret_cast<const float4*>(a_row + q * apart_m);
      const float4 y = *reinterpret_cast<const float4*>(b_row + q * apart_n);
      a[q * 4] = x.x, a[q * 4 + 1] = x.y, a[q * 4 + 2] = x.z, a[q * 4 + 3] = x.w;
      b[q * 4] = y.x, b[q * 4 + 1] = y.y, b[q * 4 + 2] = y.z, b[q * 4 + 3] = y.w;
    }
  }
};

struct Sums {
  float value[8][8] = {};

  __device__ void add(const Fragment& f) {
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
      for (int c = 0; c < 8; ++c) value[r][c] = fmaf(f.a[r], f.b[c], value[r][c]);
  }

  __device__ void store(const Params& p, int row, int apart_m, int col, int apart_n) const {
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
      for (int q = 0; q < 2; ++q)
        store4(p.c, p.m, p.n, row + r / 4 * apart_m + r % 4, col + q * apart_n, &value[r][q * 4]);
  }
};

}  // namespace gemmhoist::ladder
