// Main loop of the tensor-core kernels for sm_90a: bulk copies of image units by one thread, products by two
// warpgroups, in turn on a ring of stages.
//
// Roles: the first warpgroup's first thread brings stages; the other two warpgroups take half of the tile's
// columns each. To wgmma the columns of C are the rows, since then two neighbouring sums of a thread are
// neighbours in C.
//
// Barriers, two a stage: `full` ends its phase when the stage's bytes have landed; `empty` when all consuming
// warps have done with the stage. A warp has done when the products that read the stage are complete.
//
// The block begins to bring stages, and while they travel all its threads find the magnitudes of its rows of
// A and columns of B over all of k. A tile that is out of range is marked and left.
#pragma once

#include "kernels/operand_image.hpp"
#include "kernels/prepared_tile.cuh"
#include "kernels/wgmma.cuh"

namespace gemmhoist::kernels {

template <const KernelDescriptor& facts>
struct WgmmaTile {
  using Image = OperandImage<facts.precision>;
  static constexpr int kTileM = facts.tile_m, kTileN = facts.tile_n, kStages = facts.stages;
  static constexpr int kThreads = facts.threads;
  static constexpr int kRowUnits = kTileM / kImageRows;
  static constexpr int kUnitBytes = Image::kUnitBytes;
  static constexpr int kColsOffset = kRowUnits * kUnitBytes;  // of B in a stage
  static constexpr int kStageBytes = kColsOffset + kUnitBytes;
  static constexpr int kControlBytes = 2 * kStages * 8 + 64;
  static constexpr int kSharedBytes = kStages * kStageBytes + kControlBytes;
  static constexpr int kGroups = 2, kGroupThreads = 128, kGroupCols = 64;
  static constexpr int kConsumerWarps = kGroups * kGroupThreads / 32;

  static_assert(kSharedBytes == facts.shared_bytes);
  static_assert(facts.threads == (1 + kGroups) * kGroupThreads);
  static_assert(facts.tile_k == kImageK && kTileN == kImageRows && kTileN == kGroups * kGroupCols);
  static_assert(kTileM % kImageRows == 0 && kStageBytes % 1024 == 0,
                "the swizzle's pattern begins at a stage");
};

// Shared memory: the stages, then this.
template <typename Tile>
struct WgmmaControl {
  Mbarrier full[Tile::kStages], empty[Tile::kStages];
  TileRange range;
  static_assert(sizeof(Mbarrier) == 8);
};

template <int stages>
struct RingPosition {
  int stage = 0, parity = 0;
  __device__ void advance() {
    if (++stage < stages) return;
    stage = 0;
    parity ^= 1;
  }
};

// Brings one stage after another.
template <typename Tile>
struct UnitCopy {
  const char* rows;
  const char* cols;
  std::int64_t rows_pitch;  // bytes between units above each other

  __device__ UnitCopy(const PreparedGemmKernelParams& params, TilePosition tile) {
    rows_pitch = params.a_unit_pitch * Tile::kUnitBytes;
    rows = static_cast<const char*>(params.a_image) + tile.row * Tile::kRowUnits * rows_pitch;
    cols = static_cast<const char*>(params.b_image) + tile.col * params.b_unit_pitch * Tile::kUnitBytes;
  }

  __device__ void copy(char* stage, Mbarrier* full) {
    mbarrier_arrive_expecting(full, Tile::kStageBytes);
#pragma unroll
    for (int unit = 0; unit < Tile::kRowUnits; ++unit)
      bulk_copy(stage + unit * Tile::kUnitBytes, rows + unit * rows_pitch, Tile::kUnitBytes, full);
    bulk_copy(stage + Tile::kColsOffset, cols, Tile::kUnitBytes, full);
    rows += Tile::kUnitBytes;
    cols += Tile::kUnitBytes;
  }
};

// Six products of three bfloat16 pieces, small to large. Sums of 32 steps of k leave the tensor cores, which
// truncate, for fp32 registers, which round: while one set of 64 accumulators is added, the other is at work.
// Sums of 2048 steps go to C (WarpC).
template <typename Tile>
struct Bf16x6Math {
  static constexpr int kSums = Tile::kTileM / 2;
  static_assert(Tile::kTileM == 128 && Tile::Image::kPieces == 3);
  float sum[kSums];

  __device__ static __forceinline__ void multiply(float (&part)[kSums], std::uint64_t cols,
                                                  std::uint64_t rows) {
    constexpr int kHigh = 0, kMiddle = 1, kLow = 2;
    constexpr int kRowPiece[] = {kMiddle, kHigh, kLow, kHigh, kMiddle, kHigh};
    constexpr int kColPiece[] = {kMiddle, kLow, kHigh, kMiddle, kHigh, kHigh};
    constexpr int kPlane = Tile::Image::kPlaneBytes / 16;
    wgmma_fence();
#pragma unroll
    for (int product = 0; product < 6; ++product)
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        const std::uint64_t a = cols + kColPiece[product] * kPlane + step * 2;
        const std::uint64_t b = rows + kRowPiece[product] * kPlane + step * 2;
        if (product == 0 && step == 0)
          wgmma_bf16_128_first(part, a, b);
        else
          wgmma_bf16_128(part, a, b);
      }
    wgmma_commit();
  }

  __device__ __forceinline__ void promote(float (&part)[kSums]) {
    wgmma_settle(part);
#pragma unroll
    for (int i = 0; i < kSums; ++i) sum[i] += part[i];
  }

  // `feed.wait()` waits for the next stage; `feed.release()` gives the oldest one back.
  template <typename Feed>
  __device__ __forceinline__ void run(Feed& feed, int blocks, WarpC& c) {
    // 2048 of k: 64 additions here, and as many in C at k = 131072.
    constexpr int kTurnsAPut = 32;
    int turns = 0;
    float part[2][kSums];
#pragma unroll
    for (int i = 0; i < kSums; ++i) sum[i] = 0.0f;
    feed.wait();
    multiply(part[0], feed.cols, feed.rows);
    int left = blocks - 1;
    // Two stages a turn, since each set of accumulators must keep its registers.
    while (left >= 2) {
      feed.wait();
      multiply(part[1], feed.cols, feed.rows);
      wgmma_wait<1>();
      feed.release();
      promote(part[0]);
      feed.wait();
      multiply(part[0], feed.cols, feed.rows);
      wgmma_wait<1>();
      feed.release();
      promote(part[1]);
      left -= 2;
      if (++turns == kTurnsAPut) {
        turns = 0;
        c.put(sum, 1.0f);
        c.holds = true;
#pragma unroll
        for (int i = 0; i < kSums; ++i) sum[i] = 0.0f;
      }
    }
    if (left > 0) {
      feed.wait();
      multiply(part[1], feed.cols, feed.rows);
      wgmma_wait<1>();
      feed.release();
      promote(part[0]);
      wgmma_wait<0>();
      promote(part[1]);
    } else {
      wgmma_wait<0>();
      promote(part[0]);
    }
    feed.release();
  }
};

// One product of tf32 values, summed by the tensor cores over all of k.
template <typename Tile>
struct Tf32Math {
  static constexpr int kSums = Tile::kTileM / 2;
  static_assert(Tile::kTileM == 256 && Tile::Image::kPieces == 1);
  float sum[kSums];

  __device__ __forceinline__ void multiply(std::uint64_t cols, std::uint64_t rows) {
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; ++step) wgmma_tf32_256(sum, cols + step * 2, rows + step * 2);
    wgmma_commit();
  }

  template <typename Feed>
  __device__ __forceinline__ void run(Feed& feed, int blocks, WarpC&) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) sum[i] = 0.0f;
    feed.wait();
    multiply(feed.cols, feed.rows);
    for (int block = 1; block < blocks; ++block) {
      feed.wait();
      multiply(feed.cols, feed.rows);
      wgmma_wait<1>();
      feed.release();
    }
    wgmma_wait<0>();
    wgmma_settle(sum);
    feed.release();
  }
};

// A warpgroup's view of the ring.
template <typename Tile>
struct StageFeed {
  WgmmaControl<Tile>* control;
  std::uint64_t first_cols, first_rows;  // of stage 0
  std::uint64_t cols, rows;              // of the stage waited for
  RingPosition<Tile::kStages> next;
  int oldest = 0;

  __device__ __forceinline__ void wait() {
    mbarrier_wait(control->full + next.stage, next.parity);
    const std::uint64_t offset = static_cast<unsigned>(next.stage * (Tile::kStageBytes / 16));
    cols = first_cols + offset;
    rows = first_rows + offset;
    next.advance();
  }

  __device__ __forceinline__ void release() {
    if (threadIdx.x % 32 == 0) mbarrier_arrive(control->empty + oldest);
    if (++oldest == Tile::kStages) oldest = 0;
  }
};

template <typename Tile, typename Math>
__device__ __forceinline__ void gemm_wgmma(const PreparedGemmKernelParams& params, std::uint32_t group) {
  extern __shared__ float4 shared_memory[];
  char* const stages = reinterpret_cast<char*>(shared_memory);
  auto* const control = reinterpret_cast<WgmmaControl<Tile>*>(stages + Tile::kStages * Tile::kStageBytes);
  static_assert(sizeof(WgmmaControl<Tile>) <= Tile::kControlBytes);
  constexpr bool kChecksRange = Tile::Image::kPieces > 1;

  const std::uint32_t tile_rows = tiles_over(params.gemm.m, Tile::kTileM);
  const TilePosition tile =
      tile_of_block(blockIdx.x, tile_rows, tiles_over(params.gemm.n, Tile::kTileN), group);
  const int blocks = params.gemm.k / kImageK;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Tile::kStages; ++stage) {
      mbarrier_init(control->full + stage, 1);
      mbarrier_init(control->empty + stage, Tile::kConsumerWarps);
    }
    mbarrier_fence_init();
    control->range.clear();
  }
  __syncthreads();

  UnitCopy<Tile> copy(params, tile);
  const int filled = blocks < Tile::kStages ? blocks : Tile::kStages;
  if (threadIdx.x == 0)
    for (int stage = 0; stage < filled; ++stage)
      copy.copy(stages + stage * Tile::kStageBytes, control->full + stage);

  if constexpr (kChecksRange) {
    const bool out = out_of_range<Tile::kThreads>(params, tile, &control->range);
    if (threadIdx.x == 0) {
      params.out_of_range[tile.row + static_cast<std::int64_t>(tile.col) * tile_rows] = out;
      // The block does not end while copies into it are under way.
      if (out)
        for (int stage = 0; stage < filled; ++stage) mbarrier_wait(control->full + stage, 0);
    }
    if (out) return;
  }

  const int warpgroup = static_cast<int>(threadIdx.x) / Tile::kGroupThreads;
  if (warpgroup == 0) {
    give_registers_back<40>();
    if (threadIdx.x == 0) {
      RingPosition<Tile::kStages> refill;
      for (int block = filled; block < blocks; ++block) {
        mbarrier_wait(control->empty + refill.stage, refill.parity);
        copy.copy(stages + refill.stage * Tile::kStageBytes, control->full + refill.stage);
        refill.advance();
      }
    }
  } else {
    take_registers<232>();
    const int col_in_tile = (warpgroup - 1) * Tile::kGroupCols;
    StageFeed<Tile> feed;
    feed.control = control;
    feed.first_rows = wgmma_tile<Tile::Image::kRowBytes>(stages);
    feed.first_cols =
        wgmma_tile<Tile::Image::kRowBytes>(stages + Tile::kColsOffset + col_in_tile * Tile::Image::kRowBytes);
    Math math;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    WarpC c(params.gemm, static_cast<std::int64_t>(tile.row) * Tile::kTileM,
            static_cast<std::int64_t>(tile.col) * Tile::kTileN + col_in_tile + warp * 16);
    math.run(feed, blocks, c);
    c.put(math.sum, params.gemm.alpha);
  }
}

}  // namespace gemmhoist::kernels
