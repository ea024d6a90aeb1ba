// SIMT tile: how a block's threads share a tile of C that is made by scalar FMAs, and what each does with its
// part. The kernels of this folder differ in sizes and in how panels reach shared memory; this they have in
// common.
//
//   block   TileM x TileN of C, cut into warp tiles, warps running down the rows first
//   warp    (8 ThreadM) x (4 ThreadN), its lanes 8 down by 4 across
//   thread  ThreadM x ThreadN, in quads of four rows and of four columns: quad q of rows begins at
//           32 q + 4 (lane's row), quad g of columns at 16 g + 4 (lane's column)
//
// Shared memory holds a stage as TileK rows of A (TileM floats each), then TileK rows of B (TileN floats).
// All fragment loads are 16 bytes wide. Such a load is served a half-warp at a time when lanes that differ in
// bit 0 alone, or those that differ in bit 1 alone, ask for one address; else a quarter-warp at a time. Hence
// the odd-looking order of lanes: bit 0 and bit 4 count columns, bits 1 to 3 count rows. A half-warp then
// reads 8 different quads of A (128 bytes, each bank once) and 2 of B, in one pass each.
#pragma once

#include <cstdint>

#include "core/kernel_descriptor.hpp"
#include "kernels/held_load.cuh"
#include "kernels/tile_order.hpp"

namespace gemmhoist::kernels {

inline constexpr int kLanesDown = 8;
inline constexpr int kLanesAcross = 4;
inline constexpr int kQuad = 4;  // floats in 16 bytes

// Sizes come from the kernel's descriptor, so that the name, the launch and the code cannot differ.
template <int tile_m, int tile_n, int tile_k, int stages, int threads, int thread_m, int thread_n>
struct SimtTile {
  static constexpr int kTileM = tile_m, kTileN = tile_n, kTileK = tile_k;
  static constexpr int kStages = stages, kThreads = threads;
  static constexpr int kThreadM = thread_m, kThreadN = thread_n;
  static constexpr int kWarpM = kLanesDown * thread_m, kWarpN = kLanesAcross * thread_n;
  static constexpr int kWarpsDown = tile_m / kWarpM;
  static constexpr int kStageFloats = (tile_m + tile_n) * tile_k;
  static constexpr int kSharedBytes = stages * kStageFloats * static_cast<int>(sizeof(float));

  static_assert(thread_m % kQuad == 0 && thread_n % kQuad == 0);
  static_assert(tile_m % kWarpM == 0 && tile_n % kWarpN == 0);
  static_assert(kWarpsDown * (tile_n / kWarpN) * 32 == threads, "warp tiles cover the block's tile");
  static_assert(tile_m * tile_k % (kQuad * threads) == 0 && tile_n * tile_k % (kQuad * threads) == 0,
                "every thread copies the same number of quads");
  static_assert(threads % (tile_m / kQuad) == 0 && threads % (tile_n / kQuad) == 0,
                "a pass of all threads copies whole rows");
  static_assert(tile_m % kPanelAlignment == 0 && tile_n % kPanelAlignment == 0);
};

// Place of this thread's outputs: the first row and column of its first quads within the block's tile.
template <typename Tile>
struct ThreadPlace {
  int row, col;

  __device__ ThreadPlace() {
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % 32, warp = thread / 32;
    const int lane_row = lane >> 1 & 7;
    const int lane_col = (lane & 1) | (lane >> 4 << 1);
    row = warp % Tile::kWarpsDown * Tile::kWarpM + lane_row * kQuad;
    col = warp / Tile::kWarpsDown * Tile::kWarpN + lane_col * kQuad;
  }
};

// One row of A and of B for one thread.
template <typename Tile>
struct Fragment {
  float a[Tile::kThreadM];
  float b[Tile::kThreadN];

  // `a_row`, `b_row`: the thread's first quads in the row wanted.
  __device__ void load(const float* a_row, const float* b_row) {
#pragma unroll
    for (int q = 0; q < Tile::kThreadM / kQuad; ++q) {
      const float4 v = *reinterpret_cast<const float4*>(a_row + q * kLanesDown * kQuad);
      a[q * kQuad] = v.x, a[q * kQuad + 1] = v.y, a[q * kQuad + 2] = v.z, a[q * kQuad + 3] = v.w;
    }
#pragma unroll
    for (int q = 0; q < Tile::kThreadN / kQuad; ++q) {
      const float4 v = *reinterpret_cast<const float4*>(b_row + q * kLanesAcross * kQuad);
      b[q * kQuad] = v.x, b[q * kQuad + 1] = v.y, b[q * kQuad + 2] = v.z, b[q * kQuad + 3] = v.w;
    }
  }
};

// A fragment that keeps registers of its own (held_load.cuh), its quads loaded one by one, since the compiler
// makes a branch of neighbouring loads under one condition.
template <typename Tile>
struct HeldFragment {
  static constexpr int kQuads = (Tile::kThreadM + Tile::kThreadN) / kQuad;

  float a[Tile::kThreadM] = {};
  float b[Tile::kThreadN] = {};

  // Quads of `a` come first. `always` is not 0.
  __device__ void load_quad(int q, const float* a_row, const float* b_row, int always) {
    constexpr int kQuadsOfA = Tile::kThreadM / kQuad;
    if (q < kQuadsOfA)
      held_load(a + q * kQuad, a_row + q * kLanesDown * kQuad, always);
    else
      held_load(b + (q - kQuadsOfA) * kQuad, b_row + (q - kQuadsOfA) * kLanesAcross * kQuad, always);
  }
};

template <typename Tile>
struct Accumulator {
  float value[Tile::kThreadN][Tile::kThreadM];

  __device__ void clear() {
#pragma unroll
    for (int j = 0; j < Tile::kThreadN; ++j)
#pragma unroll
      for (int i = 0; i < Tile::kThreadM; ++i) value[j][i] = 0.0f;
  }

  // Down one column and up the next: each FMA shares an operand with the one before it, which the register
  // reuse cache then holds.
  __device__ void multiply_add(const Fragment<Tile>& fragment) {
#pragma unroll
    for (int j = 0; j < Tile::kThreadN; ++j)
#pragma unroll
      for (int i = 0; i < Tile::kThreadM; ++i) {
        const int row = j % 2 == 0 ? i : Tile::kThreadM - 1 - i;
        value[j][row] = fmaf(fragment.a[row], fragment.b[j], value[j][row]);
      }
  }

  // The same, `before(n)` being called before the n-th FMA; the compiler keeps FMAs and held loads in order.
  template <typename Before>
  __device__ void multiply_add(const HeldFragment<Tile>& fragment, Before&& before) {
#pragma unroll
    for (int j = 0; j < Tile::kThreadN; ++j)
#pragma unroll
      for (int i = 0; i < Tile::kThreadM; ++i) {
        const int row = j % 2 == 0 ? i : Tile::kThreadM - 1 - i;
        before(j * Tile::kThreadM + i);
        value[j][row] = fma_in_order(fragment.a[row], fragment.b[j], value[j][row]);
      }
  }

  // C of this thread: alpha (sum + C where asked). `rows`, `cols`: what is left of C from the tile's origin
  // on, so that no index of an edge tile can leave 31 bits. C and ldc are multiples of 16 bytes, hence a quad
  // of rows is either whole or at the edge.
  __device__ void store(const ThreadPlace<Tile>& place, float* c_tile, std::int64_t ldc, std::int32_t rows,
                        std::int32_t cols, float alpha, bool accumulate) const {
#pragma unroll
    for (int j = 0; j < Tile::kThreadN; ++j) {
      const int col = place.col + j / kQuad * kLanesAcross * kQuad + j % kQuad;
      if (col >= cols) continue;
      float* const column = c_tile + col * ldc;
#pragma unroll
      for (int q = 0; q < Tile::kThreadM / kQuad; ++q) {
        const int row = place.row + q * kLanesDown * kQuad;
        store_quad(column + row, &value[j][q * kQuad], rows - row, alpha, accumulate);
      }
    }
  }

 private:
  __device__ static void store_quad(float* c, const float* sum, std::int32_t rows, float alpha,
                                    bool accumulate) {
    if (rows >= kQuad) {
      float4 old = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (accumulate) old = *reinterpret_cast<const float4*>(c);
      *reinterpret_cast<float4*>(c) = make_float4(alpha * (sum[0] + old.x), alpha * (sum[1] + old.y),
                                                  alpha * (sum[2] + old.z), alpha * (sum[3] + old.w));
      return;
    }
#pragma unroll
    for (int r = 0; r < kQuad - 1; ++r)
      if (r < rows) c[r] = alpha * (sum[r] + (accumulate ? c[r] : 0.0f));
  }
};

// The tile of this block: origin in C, and what is left of C from there on.
struct BlockTile {
  std::int64_t row, col;
  std::int32_t rows, cols;

  __device__ BlockTile(const GemmKernelParams& params, int tile_m, int tile_n, std::uint32_t group)
      : BlockTile(
            params,
            tile_of_block(blockIdx.x, tiles_over(params.m, tile_m), tiles_over(params.n, tile_n), group),
            tile_m, tile_n) {}

  __device__ BlockTile(const GemmKernelParams& params, TilePosition tile, int tile_m, int tile_n) {
    row = static_cast<std::int64_t>(tile.row) * tile_m;
    col = static_cast<std::int64_t>(tile.col) * tile_n;
    rows = static_cast<std::int32_t>(params.m - row);
    cols = static_cast<std::int32_t>(params.n - col);
  }
};

}  // namespace gemmhoist::kernels
