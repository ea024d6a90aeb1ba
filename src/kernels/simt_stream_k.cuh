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

// Copy of an operand whose contiguous dimension is k, for products too small to pay for a launch that turns
// it first: quads of k pass through registers and are turned on their way into shared memory. A warp takes
// two quads of k of 16 neighbours of the panel: whole sectors of global memory, and, with rows of shared
// memory a quad longer than the panel, 32 different banks.
template <typename Tile, int extent>
struct TurnCopy {
  static constexpr int kPitch = extent + kQuad;
  static constexpr int kWarps = Tile::kThreads / 32, kPairs = Tile::kTileK / (2 * kQuad);
  static constexpr int kRowsAPass = 16 * kWarps / kPairs;
  static constexpr int kPasses = extent / kRowsAPass;
  static_assert(kWarps % kPairs == 0 && extent % kRowsAPass == 0);

  const float* next;
  std::int64_t pass_pitch, stage_pitch;
  int shared_offset;
  std::int32_t left;   // of the panel from this thread's first element on
  std::int32_t depth;  // of k, from this thread's quad of the next stage on

  __device__ TurnCopy(const float* matrix, std::int64_t ld, int stage_offset, std::int32_t panel_left,
                      std::int32_t depth_left) {
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % 32, warp = thread / 32;
    const int along = warp / kPairs * 16 + lane % 16;
    const int k = (warp % kPairs * 2 + lane / 16) * kQuad;
    next = matrix + along * ld + k;
    pass_pitch = kRowsAPass * ld;
    stage_pitch = Tile::kTileK - kPasses * pass_pitch;
    shared_offset = stage_offset + k * kPitch + along;
    left = panel_left - along;
    depth = depth_left - k;
  }

  __device__ float4 load(int pass) {
    float4 quad = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (pass * kRowsAPass < left && depth > 0) quad = *reinterpret_cast<const float4*>(next);
    next += pass_pitch;
    if (pass == kPasses - 1) next += stage_pitch;
    return quad;
  }
  // Every load of a stage is put before the first of the next stage is loaded.
  __device__ void put(float* stage, int pass, float4 quad) {
    float* const to = stage + shared_offset + pass * kRowsAPass;
    to[0] = quad.x;  // that one was loaded because it is inside
    to[kPitch] = depth > 1 ? quad.y : 0.0f;
    to[2 * kPitch] = depth > 2 ? quad.z : 0.0f;
    to[3 * kPitch] = depth > 3 ? quad.w : 0.0f;
    if (pass == kPasses - 1) depth -= Tile::kTileK;
  }
};

// How an operand lies: consecutive elements of its panel, or of k.
enum class Lies { k_outer, k_inner };

template <typename Tile, int extent, Lies lies>
struct CopyOf {
  using Type = EdgeCopy<Tile, extent>;
  static constexpr int kPitch = extent;
};
template <typename Tile, int extent>
struct CopyOf<Tile, extent, Lies::k_inner> {
  using Type = TurnCopy<Tile, extent>;
  static constexpr int kPitch = Type::kPitch;
};

template <typename TileType, Lies a_lies, Lies b_lies>
struct StreamKTile {
  using Tile = TileType;
  using CopyA = CopyOf<Tile, Tile::kTileM, a_lies>;
  using CopyB = CopyOf<Tile, Tile::kTileN, b_lies>;
  static constexpr bool kTurnsA = a_lies == Lies::k_inner, kTurnsB = b_lies == Lies::k_inner;
  static constexpr int kPitchA = CopyA::kPitch, kPitchB = CopyB::kPitch;
  static constexpr int kBOffset = kPitchA * Tile::kTileK;
  static constexpr int kStageFloats = (kPitchA + kPitchB) * Tile::kTileK;
  static constexpr int kRingFloats = Tile::kStages * kStageFloats;
  static constexpr int kSharedBytes = kRingFloats * static_cast<int>(sizeof(float));
};

// Steps of k in a loop body. A body of 32 steps of 128 FMAs is 70 KiB of instructions: as fast as 16 while
// all blocks of the chip walk through it together, as those of whole tiles do, but blocks whose pieces begin
// anywhere do not.
inline constexpr int kBodySteps = 16;

template <typename Kind>
struct StreamKCopy {
  using Tile = typename Kind::Tile;
  using CopyA = typename Kind::CopyA::Type;
  using CopyB = typename Kind::CopyB::Type;
  // A stage is fetched over the bodies of a tile of k, alike in each.
  static constexpr int kBodies = (Tile::kTileK - 1) / kBodySteps + 1;
  static constexpr int kSteps = Tile::kTileK / kBodies;
  static constexpr int kPassesA = CopyA::kPasses / kBodies, kPassesB = CopyB::kPasses / kBodies;
  static constexpr int kPasses = kPassesA + kPassesB;
  static_assert(kBodies * kSteps == Tile::kTileK && kBodies * kPassesA == CopyA::kPasses &&
                kBodies * kPassesB == CopyB::kPasses);
  // Steps from a quad's load to its turn into shared memory: nearly a whole body where steps are short.
  static constexpr int kLag = Tile::kThreadN < 16 ? 11 : 2;
  static constexpr int kStepsAPass = (kSteps - 1 - kLag) / kPasses;
  static_assert(kStepsAPass >= 1, "a pass has a step of its own");

  CopyA a;
  CopyB b;
  float4 held[kPasses];  // quads between load and turn

  __device__ void begin_pass(float* stage, int body, int index) {
    if (index < kPassesA) {
      if constexpr (Kind::kTurnsA)
        held[index] = a.load(body * kPassesA + index);
      else
        a.copy(stage, body * kPassesA + index);
    } else {
      if constexpr (Kind::kTurnsB)
        held[index] = b.load(body * kPassesB + index - kPassesA);
      else
        b.copy(stage, body * kPassesB + index - kPassesA);
    }
  }
  __device__ void end_pass(float* stage, int body, int index) {
    if (index < kPassesA) {
      if constexpr (Kind::kTurnsA) a.put(stage, body * kPassesA + index, held[index]);
    } else {
      if constexpr (Kind::kTurnsB) b.put(stage, body * kPassesB + index - kPassesA, held[index]);
    }
  }
  // What step `step` of body `body` fetches.
  __device__ void step(float* stage, int body, int step) {
    if (step % kStepsAPass == 0 && step / kStepsAPass < kPasses) begin_pass(stage, body, step / kStepsAPass);
    const int ends = step - kLag;
    if (ends >= 0 && ends % kStepsAPass == 0 && ends / kStepsAPass < kPasses)
      end_pass(stage, body, ends / kStepsAPass);
  }
  __device__ void whole(float* stage) {
#pragma unroll
    for (int body = 0; body < kBodies; ++body) {
#pragma unroll
      for (int index = 0; index < kPasses; ++index) begin_pass(stage, body, index);
#pragma unroll
      for (int index = 0; index < kPasses; ++index) end_pass(stage, body, index);
    }
  }
};

// Element (0, first row of k) of an operand's tile.
__device__ inline const float* at(const float* matrix, std::int64_t ld, std::int64_t along, std::int64_t row,
                                  bool k_inner) {
  return k_inner ? matrix + along * ld + row : matrix + along + row * ld;
}

// One tile of C over `count` iterations of k from `first` on.
template <typename Kind>
__device__ __forceinline__ void sum_part(const GemmKernelParams& params, const BlockTile& block,
                                         const ThreadPlace<typename Kind::Tile>& place, float* shared,
                                         std::int32_t first, std::int32_t count,
                                         Accumulator<typename Kind::Tile>& sum) {
  using Tile = typename Kind::Tile;
  using Copy = StreamKCopy<Kind>;
  constexpr int kStages = Tile::kStages, kTileK = Tile::kTileK, kSteps = Copy::kSteps;
  static_assert(kSteps % 2 == 0, "the parity of a step names its fragment in every body");
  const std::int64_t row = static_cast<std::int64_t>(first) * kTileK;
  const auto rows_left = static_cast<std::int32_t>(params.k - row);
  Copy copy{{at(params.a, params.lda, block.row, row, Kind::kTurnsA), params.lda, 0, block.rows, rows_left},
            {at(params.b, params.ldb, block.col, row, Kind::kTurnsB), params.ldb, Kind::kBOffset, block.cols,
             rows_left},
            {}};
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    if (stage < count) copy.whole(shared + stage * Kind::kStageFloats);
    cp_async_commit();  // empty groups too: wait counts groups, not tiles
  }
  cp_async_wait<kStages - 2>();
  __syncthreads();

  sum.clear();
  Fragment<Tile> fragment[2];
  int read = 0, write = (kStages - 1) * Kind::kStageFloats;
  const float* a_rows = shared + place.row;
  const float* b_rows = shared + Kind::kBOffset + place.col;
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
          a_rows += kSteps * Kind::kPitchA;
          b_rows += kSteps * Kind::kPitchB;
        } else {
          cp_async_commit();
          write = write + Kind::kStageFloats == Kind::kRingFloats ? 0 : write + Kind::kStageFloats;
          cp_async_wait<kStages - 2>();
          __syncthreads();
          read = read + Kind::kStageFloats == Kind::kRingFloats ? 0 : read + Kind::kStageFloats;
          a_rows = shared + read + place.row;
          b_rows = shared + Kind::kBOffset + read + place.col;
        }
        const int next = (step + 1) % kSteps;
        fragment[(step + 1) % 2].load(a_rows + next * Kind::kPitchA, b_rows + next * Kind::kPitchB);
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

template <typename Kind>
__device__ __forceinline__ void gemm_stream_k(const StreamKParams& params, std::uint32_t group) {
  using Tile = typename Kind::Tile;
  extern __shared__ float4 shared_memory[];
  float* const shared = reinterpret_cast<float*>(shared_memory);
  const GemmKernelParams& gemm = params.gemm;
  const std::uint32_t tile_rows = tiles_over(gemm.m, Tile::kTileM),
                      tile_cols = tiles_over(gemm.n, Tile::kTileN);
  const std::int64_t cut = std::int64_t{tile_rows} * tile_cols - params.whole;
  const std::int64_t all_iterations = cut * params.iterations;
  const std::int64_t worker = static_cast<std::int64_t>(blockIdx.x) - params.whole;
  const std::int64_t begin = worker < 0 ? 0 : piece_begin(worker, params.workers, all_iterations);
  std::uint32_t tile = blockIdx.x;
  std::int32_t first = 0,
               left = params.iterations;  // of k: where this worker enters the tile, and its own share
  if (worker >= 0) {
    tile = static_cast<std::uint32_t>(params.whole + begin / params.iterations);
    first = static_cast<std::int32_t>(begin % params.iterations);
    left = static_cast<std::int32_t>(piece_begin(worker + 1, params.workers, all_iterations) - begin);
  }
  const ThreadPlace<Tile> place;
  while (left > 0) {
    const std::int32_t count = left < params.iterations - first ? left : params.iterations - first;
    const BlockTile block(gemm, tile_of_block(tile, tile_rows, tile_cols, group), Tile::kTileM, Tile::kTileN);
    Accumulator<Tile> sum;
    sum_part<Kind>(gemm, block, place, shared, first, count, sum);
    const bool complete =
        count == params.iterations || join_parts<Tile>(params, static_cast<std::int64_t>(tile) - params.whole,
                                                       worker, all_iterations, shared, sum);
    if (complete) store_tile(sum, place, gemm, block);
    left -= count;
    first = 0;
    ++tile;
    __syncthreads();  // the next part's copies overwrite what the last step still read
  }
}

}  // namespace gemmhoist::kernels
