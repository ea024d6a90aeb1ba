// Ring of stages in shared memory, filled by cp.async: a tile of 128 x 128, 16 deep, goes from global memory
// to shared memory past the registers, while the tiles before it are multiplied.
//
// A's rows run along k, and shared memory wants them the other way round: A is copied float by float, eight
// neighbours of k by four rows a warp. With a pitch of 132 the 32 floats meet 32 different banks.
#pragma once

#include "bench/ladder/quads.cuh"
#include "kernels/cp_async.cuh"

namespace gemmhoist::ladder {

// Outside the matrix the hardware writes zeros: `inside` false reads nothing.
template <int bytes>
__device__ inline void copy_or_zero(float* shared, const float* global, bool inside) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(global), "n"(bytes),
               "r"(inside ? bytes : 0)
               : "memory");
}

struct Ring {
  static constexpr int kTile = 128, kDepth = 16, kStages = 4, kPitch = kTile + 4;
  static constexpr int kBOffset = kDepth * kPitch, kStageFloats = kDepth * (kPitch + kTile);

  const Params& p;
  float* shared;
  int row0, col0;

  __device__ const float* a(int tile, int step) const {
    return shared + tile % kStages * kStageFloats + step * kPitch;
  }
  __device__ const float* b(int tile, int step) const {
    return shared + tile % kStages * kStageFloats + kBOffset + step * kTile;
  }

  // The part of thread `threadIdx.x` of 256; commits in any case, so that groups count tiles.
  __device__ void fetch(int tile) const {
    float* const stage = shared + tile % kStages * kStageFloats;
    const int thread = threadIdx.x, k0 = tile * kDepth;
    if (k0 < p.k) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int step = thread % 8 + i % 2 * 8, row = thread / 8 + i / 2 * 32;
        const bool inside = row0 + row < p.m && k0 + step < p.k;
        const float* from = p.a + static_cast<long long>(row0 + row) * p.k + k0 + step;
        copy_or_zero<4>(stage + step * kPitch + row, inside ? from : p.a, inside);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int step = thread / 32 + i * 8, col = thread % 32 * 4;
        const bool inside = k0 + step < p.k && col0 + col < p.n;
        const float* from = p.b + static_cast<long long>(k0 + step) * p.n + col0 + col;
        copy_or_zero<16>(stage + kBOffset + step * kTile + col, inside ? from : p.b, inside);
      }
    }
    kernels::cp_async_commit();
  }
};

// The main loop: thread outputs begin at (row, col) of the block's tile. One barrier a tile: the next tile
// has landed for all, and nobody still reads the one that the next fetch overwrites.
template <int apart_m, int apart_n>
__device__ void multiply(const Ring& ring, int row, int col, Sums& sums) {
#pragma unroll
  for (int tile = 0; tile < Ring::kStages - 1; ++tile) ring.fetch(tile);
  kernels::cp_async_wait<Ring::kStages - 2>();
  __syncthreads();
  Fragment fragment[2];
  fragment[0].load(ring.a(0, 0) + row, apart_m, ring.b(0, 0) + col, apart_n);
  const int tiles = (ring.p.k - 1) / Ring::kDepth + 1;
  for (int tile = 0; tile < tiles; ++tile) {
    ring.fetch(tile + Ring::kStages - 1);
#pragma unroll
    for (int i = 0; i < Ring::kDepth; ++i) {
      if (i == Ring::kDepth - 1) {
        kernels::cp_async_wait<Ring::kStages - 2>();
        __syncthreads();
      }
      const int of = tile + (i + 1) / Ring::kDepth, step = (i + 1) % Ring::kDepth;
      fragment[(i + 1) % 2].load(ring.a(of, step) + row, apart_m, ring.b(of, step) + col, apart_n);
      sums.add(fragment[i % 2]);
    }
  }
}

}  // namespace gemmhoist::ladder
