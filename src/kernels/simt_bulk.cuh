// Main loop of the fp32 kernels whose panels are brought by the copy engine (sm_90 and later), so that the
// warps issue little but FMAs and shared loads.
//
// Panels are K-outer: the rows of a stage are contiguous runs of TileM and TileN floats, so plain bulk copies
// serve, and no tensor map is needed. Each warp brings its share of the rows, a lane a row. A producer warp
// of its own would leave the others fewer registers than they need: an SM's quarter holds 512 registers a
// lane, so a third warp caps all of them at 168, unless setmaxnreg moves some, which sm_90a alone has.
//
// Two mbarriers a stage. `full` ends its phase when every warp has announced its rows and they have landed;
// all warps wait on it before they read. `empty` ends its phase when every warp has arrived, which each does
// when its last fragments of the stage are used; a warp waits on it before it refills its rows. There is no
// barrier of the block in the loop: a warp that is ahead by less than the ring is deep goes on. The refill is
// issued half a tile after the stage became free, so that it seldom has to wait for the slowest warp.
#pragma once

#include "kernels/bulk_copy.cuh"
#include "kernels/simt_tile.cuh"

namespace gemmhoist::kernels {

template <typename Tile>
struct BulkRing {
  static constexpr int kStageBytes = Tile::kStageFloats * static_cast<int>(sizeof(float));
  static constexpr int kSharedBytes = Tile::kStages * (kStageBytes + 2 * static_cast<int>(sizeof(Mbarrier)));

  float* shared;
  Mbarrier* full;
  Mbarrier* empty;

  __device__ explicit BulkRing(float* memory)
      : shared(memory),
        full(reinterpret_cast<Mbarrier*>(memory + Tile::kStages * Tile::kStageFloats)),
        empty(full + Tile::kStages) {}

  __device__ void init() {
    if (threadIdx.x == 0) {
      for (int stage = 0; stage < Tile::kStages; ++stage) {
        mbarrier_init(full + stage, Tile::kThreads / 32);
        mbarrier_init(empty + stage, Tile::kThreads / 32);
      }
      mbarrier_fence_init();
    }
    __syncthreads();
  }
};

// Stage and parity of a walk round the ring.
template <int stages>
struct RingPosition {
  int stage = 0, parity = 0;
  __device__ void advance() {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
};

// The rows of a stage that this warp brings.
template <typename Tile>
struct RowCopy {
  static constexpr int kWarps = Tile::kThreads / 32;
  static constexpr int kRows = Tile::kTileK / kWarps;  // of each operand
  static constexpr int kBytes = kRows * (Tile::kTileM + Tile::kTileN) * static_cast<int>(sizeof(float));
  static_assert(Tile::kTileK % kWarps == 0 && 2 * kRows <= 32, "a lane brings one row at most");

  const float* next;
  std::int64_t tile_pitch;  // floats from one tile of k to the next
  int shared_offset, bytes;

  __device__ RowCopy(const GemmKernelParams& params, const BlockTile& block) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int row = warp * kRows + lane % kRows;
    const bool of_a = lane < kRows;
    const std::int64_t ld = of_a ? params.lda : params.ldb;
    next = (of_a ? params.a + block.row : params.b + block.col) + row * ld;
    tile_pitch = Tile::kTileK * ld;
    shared_offset = of_a ? row * Tile::kTileM : Tile::kTileK * Tile::kTileM + row * Tile::kTileN;
    bytes = (of_a ? Tile::kTileM : Tile::kTileN) * static_cast<int>(sizeof(float));
  }

  __device__ void copy(const BulkRing<Tile>& ring, int stage) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane == 0) mbarrier_arrive_expecting(ring.full + stage, kBytes);
    if (lane < 2 * kRows)
      bulk_copy(ring.shared + stage * Tile::kStageFloats + shared_offset, next, bytes, ring.full + stage);
    next += tile_pitch;
  }
};

// `unroll` steps of k make the body of the inner loop. All of a tile's gives the fewest instructions; a few
// keep the body within the instruction cache next to the scheduler.
template <typename Tile, int unroll = Tile::kTileK>
__device__ __forceinline__ void gemm_bulk(const GemmKernelParams& params, std::uint32_t group) {
  extern __shared__ float4 shared_memory[];
  constexpr int kStages = Tile::kStages, kTileK = Tile::kTileK, kBOffset = Tile::kTileM * kTileK;
  constexpr int kBodies = kTileK / unroll;
  static_assert(kStages >= 2 && unroll % 2 == 0, "the parity of a step names its fragment in every body");
  static_assert(kTileK % unroll == 0);
  BulkRing<Tile> ring(reinterpret_cast<float*>(shared_memory));
  const BlockTile block(params, Tile::kTileM, Tile::kTileN, group);
  const ThreadPlace<Tile> place;
  const int tiles = params.k / kTileK;
  RowCopy<Tile> copy(params, block);
  ring.init();
  for (int stage = 0; stage < kStages - 1; ++stage)
    if (stage < tiles) copy.copy(ring, stage);

  Accumulator<Tile> sum;
  sum.clear();
  Fragment<Tile> fragment[2];
  RingPosition<kStages> read, refill;
  refill.stage = kStages - 1;
  const float* a_rows = ring.shared + place.row;
  const float* b_rows = ring.shared + kBOffset + place.col;
  if (tiles > 0) {
    mbarrier_wait(ring.full, 0);
    fragment[0].load(a_rows, b_rows);
  }
  for (int tile = 0; tile < tiles; ++tile) {
    Mbarrier* const empty = ring.empty + read.stage;
#pragma unroll 1
    for (int body = 0; body < kBodies; ++body) {
#pragma unroll
      for (int step = 0; step < unroll; ++step) {
        int row = step + 1;
        if (step == unroll - 1) {
          row = 0;
          a_rows += unroll * Tile::kTileM;
          b_rows += unroll * Tile::kTileN;
          if (body == kBodies - 1) {
            read.advance();
            if (tile + 1 < tiles) mbarrier_wait(ring.full + read.stage, read.parity);
            a_rows = ring.shared + read.stage * Tile::kStageFloats + place.row;
            b_rows = ring.shared + read.stage * Tile::kStageFloats + kBOffset + place.col;
          }
        }
        // After the last tile this reads a stage that nobody uses.
        fragment[(step + 1) % 2].load(a_rows + row * Tile::kTileM, b_rows + row * Tile::kTileN);
        if (body == kBodies / 2 && step == (kBodies == 1 ? kTileK / 2 : 0) && tile < tiles - (kStages - 1)) {
          // The stage of tile - 1; before the first tile nobody has used it.
          if (tile > 0) mbarrier_wait(ring.empty + refill.stage, refill.parity ^ 1);
          copy.copy(ring, refill.stage);
          refill.advance();
        }
        sum.multiply_add(fragment[step % 2]);
      }
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(empty);
  }
  sum.store(place, params.c + block.row + block.col * params.ldc, params.ldc, block.rows, block.cols,
            params.alpha, params.accumulate != 0);
}

}  // namespace gemmhoist::kernels
