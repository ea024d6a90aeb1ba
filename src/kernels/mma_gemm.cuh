// Main loop of the tensor-core kernels from sm_80 on: image units by cp.async into a ring of stages, products
// by mma.sync. The same images as the kernels of sm_90a: the swizzle that wgmma asks for also keeps the eight
// rows of an ldmatrix on different banks.
//
//   block   128 x 128 of C, two warps down the rows by four across the columns
//   warp    64 rows x 32 columns: eight eights of rows by two sixteens of columns, which to mma.sync are the
//   rows
//
// One barrier before a stage is read: every thread's copies into it have landed; one after: nobody reads it
// any more, and copies of the stage `stages` further on may begin.
#pragma once

#include "kernels/cp_async.cuh"
#include "kernels/mma.cuh"
#include "kernels/operand_image.hpp"
#include "kernels/prepared_tile.cuh"

namespace gemmhoist::kernels {

template <const KernelDescriptor& facts>
struct MmaTile {
  using Image = OperandImage<facts.precision>;
  static constexpr bool kIsTf32 = facts.precision == Precision::tf32;
  static constexpr int kThreads = facts.threads, kStages = facts.stages;
  static constexpr int kStageBytes = 2 * Image::kUnitBytes;  // a unit of A, then one of B
  static constexpr int kSharedBytes = kStages * kStageBytes + static_cast<int>(sizeof(TileRange));
  static constexpr int kStepBytes = 32;  // of a row, that one product takes
  static constexpr int kSteps = Image::kRowBytes / kStepBytes;
  static constexpr int kStepsAtOnce = kIsTf32 ? kSteps : 1;
  static constexpr int kWarpRows = 64, kWarpCols = 32;
  static constexpr int kEights = kWarpRows / 8, kSixteens = kWarpCols / 16;
  static constexpr int kChunksAThread = kStageBytes / 16 / kThreads;

  static_assert(kSharedBytes == facts.shared_bytes);
  static_assert(facts.tile_m == kImageRows && facts.tile_n == kImageRows && facts.tile_k == kImageK);
  static_assert(kThreads / 32 * kWarpRows * kWarpCols == kImageRows * kImageRows);
  static_assert(Image::kUnitBytes % (16 * kThreads) == 0, "every thread copies as much of either unit");
};

// Where the 16 bytes at chunk `chunk` of a plane's row stand.
template <int row_bytes>
__device__ __forceinline__ int swizzled(int row, int chunk) {
  return row * row_bytes + ((chunk ^ (row_bytes == 64 ? row / 2 % 4 : row % 8)) * 16);
}

// One step's rows of one piece: of the warp's columns of C (mma's rows) and of its rows of C.
template <typename Tile>
struct MmaFragment {
  std::uint32_t cols[Tile::kSixteens][4];
  std::uint32_t rows[Tile::kEights][2];

  __device__ __forceinline__ void load_cols(const char* plane, int first, int step) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int s = 0; s < Tile::kSixteens; ++s)
      ldmatrix_x4(cols[s],
                  plane + swizzled<Tile::Image::kRowBytes>(first + s * 16 + lane % 16, step * 2 + lane / 16));
  }

  __device__ __forceinline__ void load_rows(const char* plane, int first, int step) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int pair = 0; pair < Tile::kEights / 2; ++pair) {
      std::uint32_t word[4];
      ldmatrix_x4(word, plane + swizzled<Tile::Image::kRowBytes>(first + pair * 16 + lane / 16 * 8 + lane % 8,
                                                                 step * 2 + lane / 8 % 2));
      rows[2 * pair][0] = word[0], rows[2 * pair][1] = word[1];
      rows[2 * pair + 1][0] = word[2], rows[2 * pair + 1][1] = word[3];
    }
  }
};

template <typename Tile>
struct MmaSums {
  // As store_sums wants them: for each sixteen of columns, four a row of eights.
  float value[Tile::kSixteens][Tile::kEights][4];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int s = 0; s < Tile::kSixteens; ++s)
#pragma unroll
      for (int e = 0; e < Tile::kEights; ++e)
#pragma unroll
        for (int i = 0; i < 4; ++i) value[s][e][i] = 0.0f;
  }

  __device__ __forceinline__ void add(const MmaSums& other) {
#pragma unroll
    for (int s = 0; s < Tile::kSixteens; ++s)
#pragma unroll
      for (int e = 0; e < Tile::kEights; ++e)
#pragma unroll
        for (int i = 0; i < 4; ++i) value[s][e][i] += other.value[s][e][i];
  }

  __device__ __forceinline__ void multiply(const MmaFragment<Tile>& of_cols,
                                           const MmaFragment<Tile>& of_rows) {
#pragma unroll
    for (int s = 0; s < Tile::kSixteens; ++s)
#pragma unroll
      for (int e = 0; e < Tile::kEights; ++e) {
        if constexpr (Tile::kIsTf32)
          mma_tf32(value[s][e], of_cols.cols[s], of_rows.rows[e]);
        else
          mma_bf16(value[s][e], of_cols.cols[s], of_rows.rows[e]);
      }
  }
};

// One stage. `rows` and `cols`: the units of A and of B.
template <typename Tile>
__device__ __forceinline__ void multiply_stage(MmaSums<Tile>& sum, const char* rows, const char* cols,
                                               int first_row, int first_col) {
  // Unrolled, fragments of the next step would come too early for the registers.
#pragma unroll(Tile::kStepsAtOnce)
  for (int step = 0; step < Tile::kSteps; ++step) {
    constexpr int kPlane = Tile::Image::kPlaneBytes;
    MmaFragment<Tile> high;
    if constexpr (Tile::kIsTf32) {
      high.load_cols(cols, first_col, step);
      high.load_rows(rows, first_row, step);
      sum.multiply(high, high);
    } else {
      // Small to large from zero, then into the sum with a rounding addition: tensor cores truncate.
      // Fragments come when they are needed, for want of registers.
      MmaFragment<Tile> middle, low;
      MmaSums<Tile> part;
      part.clear();
      middle.load_cols(cols + kPlane, first_col, step);
      middle.load_rows(rows + kPlane, first_row, step);
      part.multiply(middle, middle);
      low.load_cols(cols + 2 * kPlane, first_col, step);
      high.load_rows(rows, first_row, step);
      part.multiply(low, high);
      high.load_cols(cols, first_col, step);
      low.load_rows(rows + 2 * kPlane, first_row, step);
      part.multiply(high, low);
      part.multiply(middle, high);
      part.multiply(high, middle);
      part.multiply(high, high);
      sum.add(part);
    }
  }
}

template <typename Tile>
__device__ __forceinline__ void put(const MmaSums<Tile>& sum, const WarpC& c, float alpha) {
#pragma unroll
  for (int s = 0; s < Tile::kSixteens; ++s) {
    float flat[Tile::kEights * 4];
#pragma unroll
    for (int i = 0; i < Tile::kEights * 4; ++i) flat[i] = sum.value[s][i / 4][i % 4];
    c.put(flat, alpha, s * 16);
  }
}

template <typename Tile>
__device__ __forceinline__ void gemm_mma(const PreparedGemmKernelParams& params, std::uint32_t group) {
  extern __shared__ float4 shared_memory[];
  char* const stages = reinterpret_cast<char*>(shared_memory);
  constexpr int kUnitBytes = Tile::Image::kUnitBytes;
  const std::uint32_t tile_rows = tiles_over(params.gemm.m, kImageRows);
  const TilePosition tile =
      tile_of_block(blockIdx.x, tile_rows, tiles_over(params.gemm.n, kImageRows), group);
  const int thread = static_cast<int>(threadIdx.x);
  const int blocks = params.gemm.k / kImageK;

  // Units follow each other along k, hence one address each.
  const char* rows =
      static_cast<const char*>(params.a_image) + tile.row * params.a_unit_pitch * kUnitBytes + thread * 16;
  const char* cols =
      static_cast<const char*>(params.b_image) + tile.col * params.b_unit_pitch * kUnitBytes + thread * 16;
  const auto copy = [&](int stage) {
    char* const to = stages + stage * Tile::kStageBytes + thread * 16;
#pragma unroll
    for (int chunk = 0; chunk < Tile::kChunksAThread / 2; ++chunk) {
      cp_async_16(to + chunk * 16 * Tile::kThreads, rows + chunk * 16 * Tile::kThreads);
      cp_async_16(to + kUnitBytes + chunk * 16 * Tile::kThreads, cols + chunk * 16 * Tile::kThreads);
    }
    rows += kUnitBytes;
    cols += kUnitBytes;
  };
#pragma unroll
  for (int stage = 0; stage < Tile::kStages; ++stage) {
    if (stage < blocks) copy(stage);
    cp_async_commit();  // empty groups too: wait counts groups, not stages
  }

  if constexpr (!Tile::kIsTf32) {
    auto* const range = reinterpret_cast<TileRange*>(stages + Tile::kStages * Tile::kStageBytes);
    if (thread == 0) range->clear();
    __syncthreads();
    const bool out = out_of_range<Tile::kThreads>(params, tile, range);
    if (thread == 0) params.out_of_range[tile.row + static_cast<std::int64_t>(tile.col) * tile_rows] = out;
    if (out) {
      cp_async_wait<0>();
      return;
    }
  }

  const int warp = thread / 32;
  const int first_row = warp % 2 * Tile::kWarpRows, first_col = warp / 2 * Tile::kWarpCols;
  MmaSums<Tile> sum;
  sum.clear();
  WarpC c(params.gemm, static_cast<std::int64_t>(tile.row) * kImageRows + first_row,
          static_cast<std::int64_t>(tile.col) * kImageRows + first_col);
  int stage = 0;
  for (int block = 0; block < blocks; ++block) {
    // 1024 of k: 64 additions in registers.
    if (!Tile::kIsTf32 && block > 0 && block % 32 == 0) {
      put(sum, c, 1.0f);
      c.holds = true;
      sum.clear();
    }
    cp_async_wait<Tile::kStages - 1>();
    __syncthreads();
    const char* const unit = stages + stage * Tile::kStageBytes;
    multiply_stage<Tile>(sum, unit, unit + kUnitBytes, first_row, first_col);
    __syncthreads();
    if (block + Tile::kStages < blocks) copy(stage);
    cp_async_commit();
    stage = stage + 1 == Tile::kStages ? 0 : stage + 1;
  }

  put(sum, c, params.gemm.alpha);
}

}  // namespace gemmhoist::kernels
