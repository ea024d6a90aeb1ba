// Main loop of the tensor-core kernels for sm_90a: bulk copies of image units by one thread, products by two
// warpgroups, in turn on a ring of stages.
//
// A cluster's blocks make tiles that follow each other along n and share their rows of A: each brings an
// equal part of those and the copy engine writes it into all of them.
//
// Roles: the first warpgroup's first thread brings stages; the other two warpgroups take half of the tile's
// columns each. To wgmma the columns of C are the rows, since then two neighbouring sums of a thread are
// neighbours in C.
//
// Barriers, two a stage: `full` ends its phase when the stage's bytes have landed (whichever block asked for
// them); `empty` when all consuming warps of the cluster have done with the stage, since the next copy writes
// into all their blocks. A warp has done when the products that read the stage are complete.
#pragma once

#include "kernels/magnitude_range.hpp"
#include "kernels/operand_image.hpp"
#include "kernels/tile_order.hpp"
#include "kernels/wgmma.cuh"

namespace gemmhoist::kernels {

template <const KernelDescriptor& facts>
struct WgmmaTile {
  using Image = OperandImage<facts.precision>;
  static constexpr int kTileM = facts.tile_m, kTileN = facts.tile_n, kStages = facts.stages;
  static constexpr int kCluster = facts.cluster;
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
  std::uint32_t least[2], greatest[2];  // of A's rows and of B's columns, over all of k
  std::uint32_t left_out[2];            // by rank: the tile belongs to fp32, or there is none
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

// The tile of this block. `exists` is false where the cluster stands over C's last column.
template <typename Tile>
struct WgmmaPlace {
  unsigned rank = 0;
  std::uint32_t tile_row, tile_col;
  bool exists;

  __device__ WgmmaPlace(const GemmKernelParams& params, std::uint32_t group) {
    if constexpr (Tile::kCluster > 1) rank = cluster_rank();
    const std::uint32_t tile_cols = tiles_over(params.n, Tile::kTileN);
    const TilePosition position =
        tile_of_block(blockIdx.x / Tile::kCluster, tiles_over(params.m, Tile::kTileM),
                      (tile_cols + Tile::kCluster - 1) / Tile::kCluster, group);
    tile_row = position.row;
    tile_col = position.col * Tile::kCluster + rank;
    exists = tile_col < tile_cols;
    if (!exists) --tile_col;  // brings what its neighbour needs, and makes nothing
  }
};

// Brings one stage after another.
template <typename Tile>
struct UnitCopy {
  const char* rows;
  const char* cols;
  std::int64_t rows_pitch;  // bytes between units above each other
  unsigned rank;

  __device__ UnitCopy(const PreparedGemmKernelParams& params, const WgmmaPlace<Tile>& place)
      : rank(place.rank) {
    rows_pitch = params.a_unit_pitch * Tile::kUnitBytes;
    rows = static_cast<const char*>(params.a_image) + place.tile_row * Tile::kRowUnits * rows_pitch;
    cols = static_cast<const char*>(params.b_image) + place.tile_col * params.b_unit_pitch * Tile::kUnitBytes;
  }

  __device__ void copy(char* stage, Mbarrier* full) {
    constexpr int kPart = Tile::kColsOffset / Tile::kCluster;
    constexpr int kRun = kPart < Tile::kUnitBytes ? kPart : Tile::kUnitBytes;
    mbarrier_arrive_expecting(full, Tile::kStageBytes);
    bulk_copy(stage + Tile::kColsOffset, cols, Tile::kUnitBytes, full);
#pragma unroll
    for (int part = 0; part < kPart; part += kRun) {
      const int offset = static_cast<int>(rank) * kPart + part;
      const char* const from = rows + offset / Tile::kUnitBytes * rows_pitch + offset % Tile::kUnitBytes;
      if constexpr (Tile::kCluster > 1)
        bulk_copy_to_cluster(stage + offset, from, kRun, full, (1 << Tile::kCluster) - 1);
      else
        bulk_copy(stage + offset, from, kRun, full);
    }
    rows += Tile::kUnitBytes;
    cols += Tile::kUnitBytes;
  }
};

// C of this thread: alpha (sum + C where asked). Sums as wgmma.cuh tells; rows of C are its columns. C and
// ldc are multiples of 16 bytes and rows come in even pairs, so that a pair is 8-byte aligned.
template <int count>
__device__ __forceinline__ void store_sums(const float (&sum)[count], const GemmKernelParams& params,
                                           std::int64_t row0, std::int64_t col0) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int lane = thread % 32, warp = thread / 32;
  const std::int64_t row_first = row0 + lane % 4 * 2;
  const bool accumulate = params.accumulate != 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t col = col0 + warp * 16 + half * 8 + lane / 4;
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

// Six products of three bfloat16 pieces, small to large. Sums of 32 steps of k leave the tensor cores, which
// truncate, for fp32 registers, which round: while one set of 64 accumulators is added, the other is at work.
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

  // `tiles(stage, cols, rows)` waits for a stage; `release()` gives the oldest one back.
  template <typename Feed>
  __device__ __forceinline__ void run(Feed& feed, int blocks) {
    float part[2][kSums];
#pragma unroll
    for (int i = 0; i < kSums; ++i) sum[i] = 0.0f;
    feed.wait();
    multiply(part[0], feed.cols, feed.rows);
    int left = blocks - 1;
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
  __device__ __forceinline__ void run(Feed& feed, int blocks) {
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
    const unsigned lane = threadIdx.x % 32;
    if constexpr (Tile::kCluster > 1) {
      if (lane < Tile::kCluster) mbarrier_arrive_at(control->empty + oldest, lane);
    } else {
      if (lane == 0) mbarrier_arrive(control->empty + oldest);
    }
    if (++oldest == Tile::kStages) oldest = 0;
  }
};

// Whether this block's tile is out of the precision's range. Called by all threads.
template <typename Tile>
__device__ __forceinline__ bool out_of_range(const PreparedGemmKernelParams& params,
                                             const WgmmaPlace<Tile>& place, WgmmaControl<Tile>* control) {
  const int blocks = params.gemm.k / kImageK;
  const MagnitudeRange* const ranges[2] = {params.a_ranges + place.tile_row * params.a_unit_pitch,
                                           params.b_ranges + place.tile_col * params.b_unit_pitch};
#pragma unroll
  for (int operand = 0; operand < 2; ++operand) {
    MagnitudeRange range = kNoMagnitude;
    for (int q = static_cast<int>(threadIdx.x); q < blocks; q += static_cast<int>(blockDim.x)) {
      const MagnitudeRange unit = ranges[operand][q];
      range.least = unit.least < range.least ? unit.least : range.least;
      range.greatest = unit.greatest > range.greatest ? unit.greatest : range.greatest;
    }
    range.least = __reduce_min_sync(0xFFFFFFFFu, range.least);
    range.greatest = __reduce_max_sync(0xFFFFFFFFu, range.greatest);
    if (threadIdx.x % 32 == 0) {
      atomicMin(control->least + operand, range.least);
      atomicMax(control->greatest + operand, range.greatest);
    }
  }
  __syncthreads();
  return !bf16x6_in_range({control->least[0], control->greatest[0]},
                          {control->least[1], control->greatest[1]}, params.gemm.k);
}

template <typename Tile, typename Math>
__device__ __forceinline__ void gemm_wgmma(const PreparedGemmKernelParams& params, std::uint32_t group) {
  extern __shared__ float4 shared_memory[];
  char* const stages = reinterpret_cast<char*>(shared_memory);
  auto* const control = reinterpret_cast<WgmmaControl<Tile>*>(stages + Tile::kStages * Tile::kStageBytes);
  static_assert(sizeof(WgmmaControl<Tile>) <= Tile::kControlBytes);
  constexpr bool kChecksRange = Tile::Image::kPieces > 1;

  const WgmmaPlace<Tile> place(params.gemm, group);
  const int blocks = params.gemm.k / kImageK;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Tile::kStages; ++stage) {
      mbarrier_init(control->full + stage, 1);
      mbarrier_init(control->empty + stage, Tile::kConsumerWarps * Tile::kCluster);
    }
    mbarrier_fence_init();
    for (int operand = 0; operand < 2; ++operand) {
      control->least[operand] = kNoMagnitude.least;
      control->greatest[operand] = kNoMagnitude.greatest;
    }
  }
  if constexpr (Tile::kCluster > 1)
    cluster_barrier();
  else
    __syncthreads();

  UnitCopy<Tile> copy(params, place);
  const int filled = blocks < Tile::kStages ? blocks : Tile::kStages;
  if (threadIdx.x == 0)
    for (int stage = 0; stage < filled; ++stage)
      copy.copy(stages + stage * Tile::kStageBytes, control->full + stage);

  bool left_out = !place.exists;
  if constexpr (kChecksRange) {
    const bool out = out_of_range(params, place, control);
    if (threadIdx.x == 0 && place.exists)
      params.out_of_range[place.tile_row + place.tile_col * tiles_over(params.gemm.m, Tile::kTileM)] = out;
    left_out = left_out || out;
    bool all_left_out = left_out;
    if constexpr (Tile::kCluster > 1) {
      if (threadIdx.x < Tile::kCluster) store_at(control->left_out + place.rank, threadIdx.x, left_out);
      cluster_barrier();
      for (int rank = 0; rank < Tile::kCluster; ++rank)
        all_left_out = all_left_out && control->left_out[rank];
    }
    if (all_left_out) {
      // No block ends while copies into it are under way.
      if (threadIdx.x == 0)
        for (int stage = 0; stage < filled; ++stage) mbarrier_wait(control->full + stage, 0);
      if constexpr (Tile::kCluster > 1) cluster_barrier();
      return;
    }
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
    math.run(feed, blocks);
    if (!left_out)
      store_sums(math.sum, params.gemm, static_cast<std::int64_t>(place.tile_row) * Tile::kTileM,
                 static_cast<std::int64_t>(place.tile_col) * Tile::kTileN + col_in_tile);
  }
  // No block ends while its neighbours copy into it or tell its barriers.
  if constexpr (Tile::kCluster > 1) cluster_barrier();
}

}  // namespace gemmhoist::kernels
