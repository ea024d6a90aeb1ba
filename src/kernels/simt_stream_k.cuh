// Main loop of the fp32 kernels that deal their work out by iterations of k (stream_k.hpp) and read a
// caller's own K-outer matrices. The ring, its copies and its one barrier a tile of k are those of
// simt_cp_async.cuh; what lies outside a matrix is written to shared memory as zeros by the copy itself.
#pragma once

#include "kernels/simt_cp_async.cuh"
#include "kernels/stream_k.hpp"

namespace gemmhoist::kernels {

// PanelCopy with edges. Along the panel a quad is inside or not: what it holds of rows past the matrix
// reaches only elements of C that are not stored. Along k zeros are what counts.
template <typename Tile, int extent>
struct EdgeCopy {
  using Inner = PanelCopy<Tile, extent>;
  static constexpr int kPasses = Inner::kPasses;

  const float* next;
  std::int64_t pass_pitch;
  int shared_offset;
  std::int32_t
      depth;  // rows of k left, from this thread's first row of the next stage on; none for a quad outside

  // `left`, `rows_left`: of the matrix from the tile on, along the panel and along k.
  __device__ EdgeCopy(const float* panel, std::int64_t ld, int stage_offset, std::int32_t left,
                      std::int32_t rows_left) {
    const int thread = static_cast<int>(threadIdx.x);
    const int row = thread / Inner::kQuadsARow, quad = thread % Inner::kQuadsARow;
    const bool inside = quad * kQuad < left;
    next = panel + row * ld + (inside ? quad * kQuad : 0);
    pass_pitch = Inner::kRowsAPass * ld;
    shared_offset = stage_offset + row * extent + quad * kQuad;
    depth = inside ? rows_left - row : 0;
  }

  __device__ void copy(float* stage, int pass) {
    cp_async_16_or_zero(stage + shared_offset + pass * Inner::kRowsAPass * extent, next,
                        pass * Inner::kRowsAPass < depth);
    next += pass_pitch;
    if (pass == kPasses - 1) depth -= Tile::kTileK;  // the next pass is of the next stage
  }
};

// Steps of k in a loop body. A body of 32 steps of 128 FMAs is 70 KiB of instructions: as fast as 16 while
// all blocks of the chip walk through it together, as those of whole tiles do, but blocks whose pieces begin
// anywhere do not.
inline constexpr int kBodySteps = 16;

template <typename Tile>
struct EdgeStageCopy {
  using CopyA = EdgeCopy<Tile, Tile::kTileM>;
  using CopyB = EdgeCopy<Tile, Tile::kTileN>;
  // A stage is fetched over the bodies of a tile of k, alike in each.
  static constexpr int kBodies = (Tile::kTileK - 1) / kBodySteps + 1;
  static constexpr int kSteps = Tile::kTileK / kBodies;
  static constexpr int kPassesA = CopyA::kPasses / kBodies, kPassesB = CopyB::kPasses / kBodies;
  static_assert(kBodies * kSteps == Tile::kTileK && kBodies * kPassesA == CopyA::kPasses &&
                kBodies * kPassesB == CopyB::kPasses);
  static constexpr int kStepsAPass = (kSteps - 1) / (kPassesA + kPassesB);
  static_assert(kStepsAPass >= 1, "a pass has a step of its own");

  CopyA a;
  CopyB b;

  // What step `step` of body `body` fetches.
  __device__ void step(float* stage, int body, int step) {
    if (step % kStepsAPass != 0) return;
    const int index = step / kStepsAPass;
    if (index < kPassesA)
      a.copy(stage, body * kPassesA + index);
    else if (index < kPassesA + kPassesB)
      b.copy(stage, body * kPassesB + index - kPassesA);
  }
  __device__ void whole(float* stage) {
#pragma unroll
    for (int body = 0; body < kBodies; ++body)
#pragma unroll
      for (int at = 0; at < kSteps - 1; ++at) step(stage, body, at);
  }
};

// One tile of C over `count` iterations of k from `first` on.
template <typename Tile>
__device__ __forceinline__ void sum_part(const GemmKernelParams& params, const BlockTile& block,
                                         const ThreadPlace<Tile>& place, float* shared, std::int32_t first,
                                         std::int32_t count, Accumulator<Tile>& sum) {
  using Copy = EdgeStageCopy<Tile>;
  constexpr int kStages = Tile::kStages, kTileK = Tile::kTileK, kSteps = Copy::kSteps;
  constexpr int kBOffset = Tile::kTileM * kTileK;
  constexpr int kRingFloats = kStages * Tile::kStageFloats;
  static_assert(kSteps % 2 == 0, "the parity of a step names its fragment in every body");
  const std::int64_t row = static_cast<std::int64_t>(first) * kTileK;
  const auto rows_left = static_cast<std::int32_t>(params.k - row);
  Copy copy{{params.a + block.row + row * params.lda, params.lda, 0, block.rows, rows_left},
            {params.b + block.col + row * params.ldb, params.ldb, kBOffset, block.cols, rows_left}};
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    if (stage < count) copy.whole(shared + stage * Tile::kStageFloats);
    cp_async_commit();  // empty groups too: wait counts groups, not tiles
  }
  cp_async_wait<kStages - 2>();
  __syncthreads();

  sum.clear();
  Fragment<Tile> fragment[2];
  int read = 0, write = (kStages - 1) * Tile::kStageFloats;
  const float* a_rows = shared + place.row;
  const float* b_rows = shared + kBOffset + place.col;
  fragment[0].load(a_rows, b_rows);
  for (std::int32_t tile = 0; tile < count; ++tile) {
    const bool fetch = tile < count - (kStages - 1);
#pragma unroll 1
    for (int body = 0; body < Copy::kBodies; ++body) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        // The rows of the next step: the next of this tile of k, or the first of the next one.
        if (step < kSteps - 1) {
          if (fetch) copy.step(shared + write, body, step);
        } else if (body < Copy::kBodies - 1) {
          a_rows += kSteps * Tile::kTileM;
          b_rows += kSteps * Tile::kTileN;
        } else {
          cp_async_commit();
          write = write + Tile::kStageFloats == kRingFloats ? 0 : write + Tile::kStageFloats;
          cp_async_wait<kStages - 2>();
          __syncthreads();
          read = read + Tile::kStageFloats == kRingFloats ? 0 : read + Tile::kStageFloats;
          a_rows = shared + read + place.row;
          b_rows = shared + kBOffset + read + place.col;
        }
        const int next = (step + 1) % kSteps;
        fragment[(step + 1) % 2].load(a_rows + next * Tile::kTileM, b_rows + next * Tile::kTileN);
        sum.multiply_add(fragment[step % 2]);
      }
    }
  }
}

// Accumulator::store for a C of any alignment: quads where columns begin at multiples of 16 bytes, else
// floats.
template <typename Tile>
__device__ __forceinline__ void store_tile(const Accumulator<Tile>& sum, const ThreadPlace<Tile>& place,
                                           const GemmKernelParams& params, const BlockTile& block) {
  const bool quads =
      params.ldc % kQuad == 0 && reinterpret_cast<std::uintptr_t>(params.c) % sizeof(float4) == 0;
  float* const tile = params.c + block.row + block.col * params.ldc;
#pragma unroll
  for (int j = 0; j < Tile::kThreadN; ++j) {
    const int col = place.col + j / kQuad * kLanesAcross * kQuad + j % kQuad;
    if (col >= block.cols) continue;
#pragma unroll
    for (int q = 0; q < Tile::kThreadM / kQuad; ++q) {
      const int row = place.row + q * kLanesDown * kQuad;
      float* const c = tile + col * params.ldc + row;
      const float* const s = &sum.value[j][q * kQuad];
      if (quads && row + kQuad <= block.rows && params.accumulate == 0) {
        *reinterpret_cast<float4*>(c) =
            make_float4(params.alpha * s[0], params.alpha * s[1], params.alpha * s[2], params.alpha * s[3]);
      } else {
#pragma unroll
        for (int r = 0; r < kQuad; ++r)
          if (row + r < block.rows) c[r] = params.alpha * (params.accumulate != 0 ? s[r] + c[r] : s[r]);
      }
    }
  }
}

// A part of a tile on its way through global memory, a thread's floats a block's width apart. Float by float:
// a quad would bind four accumulators to neighbouring registers, and most FMAs of the main loop would then
// read two operands from one register bank (2955 of 4096 instead of 403; the accumulators' free choice is
// worth 10 %).
template <typename Tile>
struct Partial {
  float* floats;

  __device__ Partial(float* partials, std::int64_t slot)
      : floats(partials + slot * (Tile::kTileM * Tile::kTileN) + threadIdx.x) {}

  __device__ void put(const Accumulator<Tile>& sum) const {
#pragma unroll
    for (int j = 0; j < Tile::kThreadN; ++j)
#pragma unroll
      for (int i = 0; i < Tile::kThreadM; ++i)
        floats[(j * Tile::kThreadM + i) * Tile::kThreads] = sum.value[j][i];
  }
  // Past the L1, which may hold what lay there before.
  __device__ void add_to(Accumulator<Tile>& sum) const {
#pragma unroll
    for (int j = 0; j < Tile::kThreadN; ++j)
#pragma unroll
      for (int i = 0; i < Tile::kThreadM; ++i)
        sum.value[j][i] += __ldcg(&floats[(j * Tile::kThreadM + i) * Tile::kThreads]);
  }
};

// Leaves this worker's part of a tile, and returns whether all parts are there: then `sum` is their sum, made
// in the order of k. `tile` counts tiles that are not whole.
template <typename Tile>
__device__ __forceinline__ bool join_parts(const StreamKParams& params, std::int64_t tile,
                                           std::int64_t worker, std::int64_t all_iterations, float* shared,
                                           Accumulator<Tile>& sum) {
  const std::int64_t begin = tile * params.iterations, last = begin + params.iterations - 1;
  const std::int64_t first_worker = worker_of(begin, params.workers, all_iterations);
  const std::int64_t last_worker = worker_of(last, params.workers, all_iterations);
  // A worker has parts of two tiles at most.
  const auto slot = [&](std::int64_t of) {
    return 2 * of + (tile - piece_begin(of, params.workers, all_iterations) / params.iterations);
  };
  Partial<Tile>(params.partials, slot(worker)).put(sum);
  __threadfence();
  __syncthreads();  // all threads' quads are visible before the ticket is drawn
  auto* const ticket = reinterpret_cast<volatile std::uint32_t*>(shared);
  if (threadIdx.x == 0) *ticket = atomicAdd(&params.tickets[tile], 1u);
  __syncthreads();
  const bool comes_last = *ticket == static_cast<std::uint32_t>(last_worker - first_worker);
  __syncthreads();  // the ring is free again
  if (!comes_last) return false;
  __threadfence();
  if (threadIdx.x == 0) params.tickets[tile] = 0;
  sum.clear();
  for (std::int64_t of = first_worker; of <= last_worker; ++of)
    Partial<Tile>(params.partials, slot(of)).add_to(sum);
  return true;
}

template <typename Tile>
__device__ __forceinline__ void gemm_stream_k(const StreamKParams& params, std::uint32_t group) {
  extern __shared__ float4 shared_memory[];
  float* const shared = reinterpret_cast<float*>(shared_memory);
  const GemmKernelParams& gemm = params.gemm;
  const std::uint32_t tile_rows = tiles_over(gemm.m, Tile::kTileM),
                      tile_cols = tiles_over(gemm.n, Tile::kTileN);
  const std::int64_t cut = std::int64_t{tile_rows} * tile_cols - params.whole;
  const std::int64_t all_iterations = cut * params.iterations;
  const std::int64_t worker = static_cast<std::int64_t>(blockIdx.x) - params.whole;
  // In iterations of the tiles that are cut; negative for those that are whole.
  std::int64_t at =
      worker < 0 ? worker * params.iterations : piece_begin(worker, params.workers, all_iterations);
  const std::int64_t end =
      worker < 0 ? at + params.iterations : piece_begin(worker + 1, params.workers, all_iterations);
  const ThreadPlace<Tile> place;
  while (at < end) {
    const std::int64_t index = at + static_cast<std::int64_t>(params.whole) * params.iterations;
    const auto tile = static_cast<std::uint32_t>(index / params.iterations);
    const auto first = static_cast<std::int32_t>(index % params.iterations);
    const std::int64_t left = end - at;
    const std::int32_t count =
        left < params.iterations - first ? static_cast<std::int32_t>(left) : params.iterations - first;
    const BlockTile block(gemm, tile_of_block(tile, tile_rows, tile_cols, group), Tile::kTileM, Tile::kTileN);
    Accumulator<Tile> sum;
    sum_part<Tile>(gemm, block, place, shared, first, count, sum);
    at += count;
    const bool complete =
        count == params.iterations || join_parts<Tile>(params, static_cast<std::int64_t>(tile) - params.whole,
                                                       worker, all_iterations, shared, sum);
    if (complete) store_tile(sum, place, gemm, block);
    __syncthreads();  // the next part's copies overwrite what the last step still read
  }
}

}  // namespace gemmhoist::kernels
