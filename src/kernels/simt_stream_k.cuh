// Main loop of the fp32 kernels that deal their work out by iterations of k (stream_k.hpp) and read a
// caller's own matrices. Shared memory holds a ring of stages, K-outer both operands, that cp.async fills
// (stream_k_copy.cuh) while older ones are multiplied. One barrier a stage, before the first fragment of the
// next is read: every thread's copies of that stage have landed then (each waits for its own, then meets the
// others), and no thread still reads the stage before, whose place the next copies take.
#pragma once

#include <type_traits>

#include "kernels/stream_k.hpp"
#include "kernels/stream_k_copy.cuh"

namespace gemmhoist::kernels {

// How an operand lies: consecutive elements of its panel at multiples of 16 bytes, the same anywhere, or
// consecutive elements of k, anywhere.
enum class Lies { k_outer, k_outer_anywhere, k_inner };

template <typename Tile, int extent, int bodies, Lies lies>
struct CopyOf {
  using Type = QuadCopy<Tile, extent, bodies>;
};
template <typename Tile, int extent, int bodies>
struct CopyOf<Tile, extent, bodies, Lies::k_outer_anywhere> {
  using Type = FloatCopy<Tile, extent, bodies>;
};
template <typename Tile, int extent, int bodies>
struct CopyOf<Tile, extent, bodies, Lies::k_inner> {
  using Type = TurnCopy<Tile, extent, bodies>;
};

// `steps`: of k in a loop body. A body of 32 steps of 128 FMAs is 70 KiB of instructions: as fast as shorter
// ones while all blocks of the chip walk through it together, as those of whole tiles do, but blocks whose
// pieces begin anywhere do not. `held`: fragments keep registers of their own (held_load.cuh), where there
// are enough.
template <typename TileType, Lies a_lies, Lies b_lies, int steps, bool held>
struct StreamKTile {
  using Tile = TileType;
  static constexpr bool kHeld = held;
  static constexpr int kSteps = steps;
  static constexpr int kBodies = Tile::kTileK / kSteps;
  using CopyA = typename CopyOf<Tile, Tile::kTileM, kBodies, a_lies>::Type;
  using CopyB = typename CopyOf<Tile, Tile::kTileN, kBodies, b_lies>::Type;
  static constexpr int kPitchA = Tile::kTileM, kPitchB = Tile::kTileN;
  static constexpr int kBOffset = kPitchA * Tile::kTileK;
  static constexpr int kStageFloats = Tile::kStageFloats;
  static_assert(kBodies * kSteps == Tile::kTileK && kSteps % 8 == 0,
                "a step's number in its body says its place in the swizzle, and which fragment is its own");
};

// Fetches stages, one after another.
template <typename Kind>
struct StreamKCopy {
  using Tile = typename Kind::Tile;
  static constexpr int kPassesA = Kind::CopyA::kBodyPasses, kPassesB = Kind::CopyB::kBodyPasses;
  static constexpr int kPasses = kPassesA + kPassesB;
  static constexpr int kStepsAPass = (Kind::kSteps - 1) / kPasses;
  static_assert(kStepsAPass >= 1, "a pass has a step of its own");

  typename Kind::CopyA a;
  typename Kind::CopyB b;

  __device__ StreamKCopy(const GemmKernelParams& gemm, const BlockTile& block, std::int64_t k, float* shared)
      : a(gemm.a, gemm.lda, block.row, k, block.rows, shared),
        b(gemm.b, gemm.ldb, block.col, k, block.cols, shared + Kind::kBOffset) {}

  // A pass of the stage at `stage` bytes from the first; nothing is fetched where not `wanted`.
  __device__ void pass(bool wanted, int stage, int body, int index) {
    if (index < kPassesA) {
      if (wanted) a.pass(stage, body, index);
      a.advance();
    } else if (index < kPasses) {
      if (wanted) b.pass(stage, body, index - kPassesA);
      b.advance();
    }
  }
  // What step `step` of body `body` fetches. Copies spread over the steps take issue slots one by one.
  __device__ void step(bool wanted, int stage, int body, int step) {
    if (step % kStepsAPass == 0) pass(wanted, stage, body, step / kStepsAPass);
  }
  __device__ void careful(int stage, std::int32_t depth) const {
    a.careful(stage, depth);
    b.careful(stage, depth);
  }
  __device__ void end_stage() {
    a.end_stage();
    b.end_stage();
  }
};

template <typename Kind>
using FragmentOf =
    std::conditional_t<Kind::kHeld, HeldFragment<typename Kind::Tile>, Fragment<typename Kind::Tile>>;

template <bool held>
__device__ __forceinline__ void take_quad(float* to, const char* from, int always) {
  if constexpr (held) {
    held_load(to, reinterpret_cast<const float*>(from), always);
  } else {
    const float4 v = *reinterpret_cast<const float4*>(from);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  }
}

// Quad `q` (A's come first) of step `step` of a body, in whose first row the thread's first quad of A begins
// at byte `a` of shared memory, and of B at `b`. Where an operand is swizzled (TurnCopy), that is undone. The
// lanes along A are the low three bits of a quad's number; along B they are two, and the third is the
// thread's own where it has several quads. `always` is not 0.
template <typename Kind>
__device__ __forceinline__ void take_quad(FragmentOf<Kind>& fragment, int q, const char* shared, int a, int b,
                                          int step, int always) {
  using Tile = typename Kind::Tile;
  constexpr int kQuadBytes = kQuad * kFloatBytes, kQuadsOfA = Tile::kThreadM / kQuad;
  constexpr bool kOwnBit = Tile::kThreadN > kQuad;
  if (q < kQuadsOfA) {
    const int swap = Kind::CopyA::kSwizzled ? step % 8 : 0;
    const char* const row = shared + (a ^ swap * kQuadBytes) + step * Kind::kPitchA * kFloatBytes;
    take_quad<Kind::kHeld>(fragment.a + q * kQuad, row + q * kLanesDown * kQuadBytes, always);
  } else {
    const int swap = Kind::CopyB::kSwizzled ? step % 8 : 0, of_b = q - kQuadsOfA;
    const int lanes = kOwnBit ? swap % kLanesAcross : swap, own = kOwnBit ? swap / kLanesAcross : 0;
    const char* const row = shared + (b ^ lanes * kQuadBytes) + step * Kind::kPitchB * kFloatBytes;
    take_quad<Kind::kHeld>(fragment.b + of_b * kQuad, row + (of_b ^ own) * kLanesAcross * kQuadBytes, always);
  }
}

// One tile of C over `count` iterations of k from `first` on.
template <typename Kind>
__device__ __forceinline__ void sum_part(const GemmKernelParams& params, const BlockTile& block,
                                         const ThreadPlace<typename Kind::Tile>& place, float* shared,
                                         std::int32_t first, std::int32_t count,
                                         Accumulator<typename Kind::Tile>& sum) {
  using Tile = typename Kind::Tile;
  constexpr int kStages = Tile::kStages, kSteps = Kind::kSteps, kAhead = kStages - 1;
  constexpr int kStageBytes = Kind::kStageFloats * kFloatBytes, kRingBytes = kStages * kStageBytes;
  const std::int64_t row = static_cast<std::int64_t>(first) * Tile::kTileK;
  const auto depth = static_cast<std::int32_t>(params.k - row);
  // Bodies of the last stage that have something to multiply.
  const std::int32_t rest = depth - (count - 1) * Tile::kTileK;
  const int last_bodies = rest < Tile::kTileK ? (rest - 1) / kSteps + 1 : Kind::kBodies;
  // Stages from the first on that lie within both matrices: all but perhaps the last, unless a matrix is
  // smaller than the tile.
  const bool inner = (!Kind::CopyA::kWhole || block.rows >= Tile::kTileM) &&
                     (!Kind::CopyB::kWhole || block.cols >= Tile::kTileN);
  const std::int32_t plain = !inner ? 0 : rest < Tile::kTileK ? count - 1 : count;
  StreamKCopy<Kind> copy(params, block, row, shared);
#pragma unroll 1
  for (int stage = 0; stage < kAhead; ++stage) {
    if (stage >= plain && stage < count) copy.careful(stage * kStageBytes, depth - stage * Tile::kTileK);
#pragma unroll
    for (int body = 0; body < Kind::kBodies; ++body)
#pragma unroll
      for (int index = 0; index < StreamKCopy<Kind>::kPasses; ++index)
        copy.pass(stage < plain, stage * kStageBytes, body, index);
    copy.end_stage();
    cp_async_commit();  // empty groups too: wait counts groups, not tiles
  }
  cp_async_wait<kStages - 2>();
  __syncthreads();

  sum.clear();
  constexpr int kQuads = HeldFragment<Tile>::kQuads;
  FragmentOf<Kind> fragment[2];
  const char* const bytes = reinterpret_cast<const char*>(shared);
  const int a_place = place.row * kFloatBytes, b_place = (Kind::kBOffset + place.col) * kFloatBytes;
  int read = 0, write = kAhead * kStageBytes;
  int a = a_place, b = b_place;
#pragma unroll
  for (int q = 0; q < kQuads; ++q) take_quad<Kind>(fragment[0], q, bytes, a, b, 0, params.k);
  std::int32_t next = kAhead;  // the stage to fetch
  if (next >= plain && next < count) copy.careful(write, depth - next * Tile::kTileK);
  bool wanted = next < plain;
  int body = 0;
#pragma unroll 1
  for (std::int32_t left = (count - 1) * Kind::kBodies + last_bodies; left > 0; --left) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      // The rows of the next step: the next of this stage, or the first of the next one.
      const bool last = step == kSteps - 1;
      if (last && body < Kind::kBodies - 1) {
        ++body;
        a += kSteps * Kind::kPitchA * kFloatBytes;
        b += kSteps * Kind::kPitchB * kFloatBytes;
      } else if (last) {
        copy.end_stage();
        cp_async_commit();
        write = write + kStageBytes == kRingBytes ? 0 : write + kStageBytes;
        cp_async_wait<kStages - 2>();
        __syncthreads();
        read = read + kStageBytes == kRingBytes ? 0 : read + kStageBytes;
        a = a_place + read;
        b = b_place + read;
        body = 0;
        ++next;
        wanted = next < plain;
        if (!wanted && next < count) copy.careful(write, depth - next * Tile::kTileK);
      }
      const auto take = [&](int q) {
        take_quad<Kind>(fragment[(step + 1) % 2], q, bytes, a, b, (step + 1) % kSteps, params.k);
      };
      // Copies behind the loads: before them they make the loop 1 % slower.
      if constexpr (Kind::kHeld) {
        // In this order, the loads spread over the first half of the FMAs.
        constexpr int kFmas = Tile::kThreadM * Tile::kThreadN, kFmasAQuad = kFmas / 2 / kQuads;
        sum.multiply_add(fragment[step % 2], [&](int n) {
          if (n % kFmasAQuad == kFmasAQuad - 1 && n / kFmasAQuad < kQuads) take(n / kFmasAQuad);
          if (n == kFmas * 5 / 8 && !last) copy.step(wanted, write, body, step);
        });
      } else {
#pragma unroll
        for (int q = 0; q < kQuads; ++q) take(q);
        if (!last) copy.step(wanted, write, body, step);
        sum.multiply_add(fragment[step % 2]);
      }
    }
  }
}

// Where a copy wants whole tiles, the last tile of a panel begins earlier: what it shares with the one before
// it is read, but not stored.
template <bool whole>
__device__ inline std::int64_t read_from(std::int64_t origin, std::int32_t extent, int tile) {
  return whole && extent >= tile && extent - tile < origin ? extent - tile : origin;
}

// Stores a tile, or of the tile `read` that was summed the part `block`. A thread's own quads are whole
// sectors of C where its columns begin at multiples of 16 bytes. Elsewhere its floats would be 16 bytes apart
// from its neighbour's, and every sector of C be written four times: there a warp passes columns through its
// part of shared memory and stores 32 neighbours at once. Float by float, as Partial does it, and why: see
// there.
template <typename Tile>
__device__ __forceinline__ void store_tile(const Accumulator<Tile>& sum, const ThreadPlace<Tile>& place,
                                           const GemmKernelParams& params, const BlockTile& read,
                                           const BlockTile& block, float* shared) {
  constexpr int kRows = kLanesDown * kQuad;
  constexpr int kPitch = Tile::kWarpM + 1;  // lanes of four columns meet 32 banks
  static_assert(Tile::kThreads / 32 * kQuad * kLanesAcross * kPitch * kFloatBytes <= Tile::kSharedBytes);
  const auto first_row = static_cast<std::int32_t>(block.row - read.row);
  const auto first_col = static_cast<std::int32_t>(block.col - read.col);
  float* const c = params.c + read.row + read.col * params.ldc;
  if (params.ldc % kQuad == 0 && reinterpret_cast<std::uintptr_t>(c) % sizeof(float4) == 0) {
#pragma unroll
    for (int j = 0; j < Tile::kThreadN; ++j) {
      const int col = place.col + j / kQuad * kLanesAcross * kQuad + j % kQuad;
      if (col < first_col || col >= read.cols) continue;
#pragma unroll
      for (int q = 0; q < Tile::kThreadM / kQuad; ++q) {
        const int row = place.row + q * kRows;
        float* const to = c + row + col * params.ldc;
        const float* const s = &sum.value[j][q * kQuad];
        if (row >= first_row && row + kQuad <= read.rows && params.accumulate == 0) {
          *reinterpret_cast<float4*>(to) =
              make_float4(params.alpha * s[0], params.alpha * s[1], params.alpha * s[2], params.alpha * s[3]);
        } else {
#pragma unroll
          for (int r = 0; r < kQuad; ++r)
            if (row + r >= first_row && row + r < read.rows)
              to[r] = params.alpha * (params.accumulate != 0 ? s[r] + to[r] : s[r]);
        }
      }
    }
    return;
  }
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int row0 = warp % Tile::kWarpsDown * Tile::kWarpM, col0 = warp / Tile::kWarpsDown * Tile::kWarpN;
  float* const columns = shared + warp * (kQuad * kLanesAcross * kPitch);
  float* const own = columns + (place.col - col0) / kQuad * kPitch + place.row - row0;
  __syncthreads();  // nobody reads the ring any more
#pragma unroll
  for (int g = 0; g < Tile::kThreadN / kQuad; ++g) {
    if (g > 0) __syncwarp();  // the columns before are read
#pragma unroll
    for (int j = 0; j < kQuad; ++j)
#pragma unroll
      for (int i = 0; i < Tile::kThreadM; ++i)
        own[j * kLanesAcross * kPitch + i / kQuad * kRows + i % kQuad] = sum.value[g * kQuad + j][i];
    __syncwarp();
#pragma unroll
    for (int column = 0; column < kQuad * kLanesAcross; ++column) {
      const int col = col0 + g * kLanesAcross * kQuad + column % kLanesAcross * kQuad + column / kLanesAcross;
#pragma unroll
      for (int down = 0; down < Tile::kWarpM; down += 32) {
        const int row = row0 + down + lane;
        const float value = columns[column * kPitch + down + lane];
        if (row < first_row || row >= read.rows || col < first_col || col >= read.cols) continue;
        float* const to = c + row + col * params.ldc;
        *to = params.alpha * (params.accumulate != 0 ? value + *to : value);
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
__device__ __forceinline__ bool join_parts(const StreamKParams& params, std::int32_t tile,
                                           std::int32_t worker, std::int32_t cut, float* shared,
                                           Accumulator<Tile>& sum) {
  const std::int64_t begin = std::int64_t{tile} * params.iterations;
  const std::int32_t first_worker = first_worker_of(params, tile, cut);
  const std::int32_t last_worker = last_worker_of(params, tile, cut);
  // A worker has parts of two tiles at most.
  const auto slot = [&](std::int32_t of) {
    return 2 * std::int64_t{of} + (piece_begin(params, of) < begin ? 1 : 0);
  };
  Partial<Tile>(params.partials, slot(worker)).put(sum);
  __threadfence();
  __syncthreads();  // all threads' floats are visible before the ticket is drawn
  auto* const ticket = reinterpret_cast<volatile std::uint32_t*>(shared);
  if (threadIdx.x == 0) *ticket = atomicAdd(&params.tickets[tile], 1u);
  __syncthreads();
  const bool comes_last = *ticket == static_cast<std::uint32_t>(last_worker - first_worker);
  __syncthreads();  // the ring is free again
  if (!comes_last) return false;
  __threadfence();
  if (threadIdx.x == 0) params.tickets[tile] = 0;
  sum.clear();
#pragma unroll 1
  for (std::int32_t of = first_worker; of <= last_worker; ++of)
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
  const auto cut = static_cast<std::int32_t>(tile_rows * tile_cols) - params.whole;
  const std::int32_t worker = static_cast<std::int32_t>(blockIdx.x) - params.whole;
  std::uint32_t tile = blockIdx.x;
  std::int32_t first = 0,
               left = params.iterations;  // of k: where this worker enters the tile, and its own share
  if (worker >= 0) {
    const std::int64_t begin = piece_begin(params, worker);
    const std::int32_t cut_tile = tile_of_piece(params, worker, cut);
    tile = static_cast<std::uint32_t>(params.whole + cut_tile);
    first = static_cast<std::int32_t>(begin - std::int64_t{cut_tile} * params.iterations);
    left = static_cast<std::int32_t>(piece_begin(params, worker + 1) - begin);
  }
  const ThreadPlace<Tile> place;
  while (left > 0) {
    const std::int32_t count = left < params.iterations - first ? left : params.iterations - first;
    const BlockTile block(gemm, tile_of_block(tile, tile_rows, tile_cols, group), Tile::kTileM, Tile::kTileN);
    BlockTile read = block;
    read.row = read_from<Kind::CopyA::kWhole>(block.row, gemm.m, Tile::kTileM);
    read.col = read_from<Kind::CopyB::kWhole>(block.col, gemm.n, Tile::kTileN);
    read.rows = static_cast<std::int32_t>(gemm.m - read.row);
    read.cols = static_cast<std::int32_t>(gemm.n - read.col);
    Accumulator<Tile> sum;
    sum_part<Kind>(gemm, read, place, shared, first, count, sum);
    const bool complete =
        count == params.iterations ||
        join_parts<Tile>(params, static_cast<std::int32_t>(tile) - params.whole, worker, cut, shared, sum);
    if (complete) store_tile(sum, place, gemm, read, block, shared);
    left -= count;
    first = 0;
    ++tile;
    __syncthreads();  // the next part's copies overwrite what the last step still read
  }
}

}  // namespace gemmhoist::kernels
