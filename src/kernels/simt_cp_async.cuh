// Main loop of the fp32 kernels that bring panels into a ring of shared stages by cp.async (sm_80 and later).
//
// While the block multiplies stage t, the copies of tile t + stages - 1 are under way into the stage that
// tile t - 1 left. They are spread over the steps of k, so that they take issue slots one by one instead of
// in a burst. Fragments are double-buffered: row p + 1 leaves shared memory while row p is multiplied.
//
// One barrier a tile, before the first fragment of the next is read. It protects both ways: every thread's
// copies of tile t + 1 have landed (each waits for its own, then meets the others), and no thread still reads
// tile t, whose last row it loaded a step earlier; so the next round may overwrite it.
#pragma once

#include <type_traits>

#include "kernels/cp_async.cuh"
#include "kernels/simt_tile.cuh"

namespace gemmhoist::kernels {

// Copies one operand's rows into a stage, one pass of all threads after another.
template <typename Tile, int extent>
struct PanelCopy {
  static constexpr int kQuadsARow = extent / kQuad;
  static constexpr int kRowsAPass = Tile::kThreads / kQuadsARow;
  static constexpr int kPasses = Tile::kTileK / kRowsAPass;

  const float* next;        // this thread's quad in the pass to come
  std::int64_t pass_pitch;  // floats from one pass to the next
  int shared_offset;        // this thread's place in a stage, in floats

  __device__ PanelCopy(const float* panel, std::int64_t ld, int stage_offset) {
    const int thread = static_cast<int>(threadIdx.x);
    const int row = thread / kQuadsARow, quad = thread % kQuadsARow;
    next = panel + row * ld + quad * kQuad;
    pass_pitch = kRowsAPass * ld;
    shared_offset = stage_offset + row * extent + quad * kQuad;
  }

  __device__ void copy(float* stage, int pass) {
    cp_async_16(stage + shared_offset + pass * kRowsAPass * extent, next);
    next += pass_pitch;  // after the last pass: the next tile of k
  }
};

template <typename Tile>
struct StageCopy {
  using CopyA = PanelCopy<Tile, Tile::kTileM>;
  using CopyB = PanelCopy<Tile, Tile::kTileN>;
  static constexpr int kPasses = CopyA::kPasses + CopyB::kPasses;
  // All passes are issued before the last step of a tile, which waits for copies.
  static constexpr int kStepsAPass = (Tile::kTileK - 1) / kPasses;
  static_assert(kStepsAPass >= 1, "a pass has a step of its own");

  CopyA a;
  CopyB b;

  __device__ void pass(float* stage, int index) {
    if (index < CopyA::kPasses)
      a.copy(stage, index);
    else if (index < kPasses)
      b.copy(stage, index - CopyA::kPasses);
  }

  // `together` passes at a time: from sm_90 on ptxas sets three empty loads before each run of copies.
  template <int together = 1>
  __device__ void step(float* stage, int step) {
    if (step % (kStepsAPass * together) != 0) return;
#pragma unroll
    for (int i = 0; i < together; ++i) pass(stage, step / kStepsAPass + i);
  }

  __device__ void whole(float* stage) {
#pragma unroll
    for (int index = 0; index < kPasses; ++index) pass(stage, index);
  }
};

// `held`: fragments keep registers of their own, copies are issued in pairs.
template <typename Tile, bool held = false>
__device__ __forceinline__ void gemm_cp_async(const GemmKernelParams& params, std::uint32_t group) {
  extern __shared__ float4 shared_memory[];
  float* const shared = reinterpret_cast<float*>(shared_memory);
  constexpr int kStages = Tile::kStages, kTileK = Tile::kTileK;
  constexpr int kBOffset = Tile::kTileM * kTileK;
  constexpr int kRingFloats = kStages * Tile::kStageFloats;
  static_assert(kStages >= 2 && kTileK % 2 == 0, "the parity of a step names its fragment in every tile");

  const BlockTile block(params, Tile::kTileM, Tile::kTileN, group);
  const ThreadPlace<Tile> place;
  StageCopy<Tile> copy{{params.a + block.row, params.lda, 0}, {params.b + block.col, params.ldb, kBOffset}};
  const int tiles = params.k / kTileK;

#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    if (stage < tiles) copy.whole(shared + stage * Tile::kStageFloats);
    cp_async_commit();  // empty groups too: wait counts groups, not tiles
  }
  cp_async_wait<kStages - 2>();
  __syncthreads();

  Accumulator<Tile> sum;
  sum.clear();
  constexpr int kTogether = held ? 2 : 1;
  std::conditional_t<held, HeldFragment<Tile>, Fragment<Tile>> fragment[2];
  int read = 0, write = (kStages - 1) * Tile::kStageFloats;  // offsets of stages in the ring
  const float* a_rows = shared + place.row;
  const float* b_rows = shared + kBOffset + place.col;
  if constexpr (held) {
#pragma unroll
    for (int q = 0; q < HeldFragment<Tile>::kQuads; ++q) fragment[0].load_quad(q, a_rows, b_rows, params.k);
  } else {
    fragment[0].load(a_rows, b_rows);
  }

  for (int tile = 0; tile < tiles; ++tile) {
    const bool fetch = tile < tiles - (kStages - 1);
#pragma unroll
    for (int step = 0; step < kTileK; ++step) {
      if (step == kTileK - 1) {
        cp_async_wait<kStages - 2>();
        __syncthreads();
        read = read + Tile::kStageFloats == kRingFloats ? 0 : read + Tile::kStageFloats;
        a_rows = shared + read + place.row;
        b_rows = shared + kBOffset + read + place.col;
      }
      // After the last tile this reads a stage that nobody uses.
      const int row = (step + 1) % kTileK;
      auto& next = fragment[(step + 1) % 2];
      const float* const a_row = a_rows + row * Tile::kTileM;
      const float* const b_row = b_rows + row * Tile::kTileN;
      if constexpr (!held) next.load(a_row, b_row);
      if (step < kTileK - 1) {
        if (fetch) copy.template step<kTogether>(shared + write, step);
        if (step == kTileK - 2) {
          cp_async_commit();
          write = write + Tile::kStageFloats == kRingFloats ? 0 : write + Tile::kStageFloats;
        }
      }
      if constexpr (held)
        sum.multiply_add(fragment[step % 2], [&](int n) {
          constexpr int kFmasAQuad = 12;  // the loads are spread over the first half of a step's FMAs
          if (n % kFmasAQuad == kFmasAQuad - 1 && n / kFmasAQuad < HeldFragment<Tile>::kQuads)
            next.load_quad(n / kFmasAQuad, a_row, b_row, params.k);
        });
      else
        sum.multiply_add(fragment[step % 2]);
    }
  }

  sum.store(place, params.c + block.row + block.col * params.ldc, params.ldc, block.rows, block.cols,
            params.alpha, params.accumulate != 0);
}

}  // namespace gemmhoist::kernels
