// How the kernels that read a caller's own matrices (simt_stream_k.cuh) bring a tile of an operand into
// shared memory. There it always lies K-outer, a row of the panel for each step of k, whatever lies in global
// memory; which copy is taken depends on that alone:
//
//   QuadCopy   consecutive elements of the panel, at multiples of 16 bytes: 16 bytes a copy
//   FloatCopy  the same at any alignment: 4 bytes a copy
//   TurnCopy   consecutive elements of k, at any alignment: 4 bytes a copy, turned on its way
//
// A stage is fetched in passes, alike in every body of the loop: each is a pass() and an advance(), which is
// made whether there is something to fetch or not. pass() has no guard: it serves stages that lie within the
// matrix. careful() fetches a whole stage that does not: along k it writes zeros, and along the panel
// nothing, since what lies there reaches only elements of C that are not stored.
#pragma once

#include "kernels/cp_async.cuh"
#include "kernels/simt_tile.cuh"

namespace gemmhoist::kernels {

inline constexpr int kFloatBytes = static_cast<int>(sizeof(float));

// Copies that a thread makes one after another, where there are as many: the compiler puts three empty loads
// before such a run, but none inside.
inline constexpr int kRun = 4;
constexpr int least(int x, int y) {
  return x < y ? x : y;
}

template <typename Tile, int extent, int bodies>
struct QuadCopy {
  static constexpr bool kSwizzled = false, kWhole = false;
  static constexpr int kQuadsARow = extent / kQuad;
  static constexpr int kRows = Tile::kThreads / kQuadsARow;      // that all threads together copy at once
  static constexpr int kCopies = Tile::kTileK / kRows / bodies;  // a thread's in a body
  static constexpr int kPassCopies = least(kCopies, kRun);
  static constexpr int kBodyPasses = kCopies / kPassCopies;
  static constexpr int kCopyBytes = kRows * extent * kFloatBytes;  // of shared memory
  static_assert(kRows * kQuadsARow == Tile::kThreads &&
                kBodyPasses * kPassCopies * kRows * bodies == Tile::kTileK);

  const char* next;    // this thread's quad in the copy to come
  std::int64_t pitch;  // bytes from one copy to the next
  SharedAddress at;    // this thread's place in the first stage

  __device__ QuadCopy(const float* matrix, std::int64_t ld, std::int64_t along, std::int64_t k,
                      std::int32_t panel_left, float* first_stage) {
    const int thread = static_cast<int>(threadIdx.x);
    const int row = thread / kQuadsARow, quad = thread % kQuadsARow;
    // Past the edge another quad will do: what is made of it is not stored.
    const int inside = quad * kQuad < panel_left ? quad * kQuad : 0;
    next = reinterpret_cast<const char*>(matrix + along + inside + (k + row) * ld);
    pitch = kRows * ld * kFloatBytes;
    at = shared_address(first_stage + row * extent + quad * kQuad);
  }

  // `stage`: bytes from the first stage to this one.
  __device__ void pass(int stage, int body, int index) const {
#pragma unroll
    for (int copy = 0; copy < kPassCopies; ++copy)
      cp_async_16(at + stage + body * kCopies * kCopyBytes + (index * kPassCopies + copy) * kCopyBytes,
                  next + copy * pitch);
  }
  __device__ void advance() {
    next += kPassCopies * pitch;
  }
  __device__ void end_stage() {}  // the next pass is of the next stage already

  // `depth`: steps of k that are left from the stage's first on.
  __device__ void careful(int stage, std::int32_t depth) const {
    const int row = static_cast<int>(threadIdx.x) / kQuadsARow;
#pragma unroll 1
    for (int copy = 0; copy < kCopies * bodies; ++copy)
      cp_async_16_or_zero(at + stage + copy * kCopyBytes, next + copy * pitch, row + copy * kRows < depth);
  }
};

template <typename Tile, int extent, int bodies>
struct FloatCopy {
  static constexpr bool kSwizzled = false, kWhole = true;
  static constexpr int kWarps = Tile::kThreads / 32;
  static constexpr int kRows =
      Tile::kTileK / kWarps / bodies;  // of shared memory, that a warp copies in a body
  static constexpr int kRowBytes = extent * kFloatBytes, kWarpBytes = 32 * kFloatBytes;
  static constexpr int kPassRows =
      least(kRows, kRun* kWarpBytes < kRowBytes ? 1 : kRun * kWarpBytes / kRowBytes);
  static constexpr int kBodyPasses = kRows / kPassRows;
  static_assert(kBodyPasses * kPassRows * kWarps * bodies == Tile::kTileK);

  const char* next;    // this thread's float in the row to come
  std::int64_t pitch;  // bytes from one of its rows to the next
  SharedAddress at;
  std::int32_t left;

  __device__ FloatCopy(const float* matrix, std::int64_t ld, std::int64_t along, std::int64_t k,
                       std::int32_t panel_left, float* first_stage) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    next = reinterpret_cast<const char*>(matrix + along + lane + (k + warp) * ld);
    pitch = kWarps * ld * kFloatBytes;
    at = shared_address(first_stage + warp * extent + lane);
    left = panel_left - lane;
  }

  __device__ void pass(int stage, int body, int index) const {
    const SharedAddress to = at + stage + body * kRows * kWarps * kRowBytes;
#pragma unroll
    for (int row = 0; row < kPassRows; ++row)
#pragma unroll
      for (int along = 0; along < kRowBytes; along += kWarpBytes)
        cp_async_4(to + ((index * kPassRows + row) * kWarps * kRowBytes + along), next + row * pitch + along);
  }
  __device__ void advance() {
    next += kPassRows * pitch;
  }
  __device__ void end_stage() {}

  __device__ void careful(int stage, std::int32_t depth) const {
    const int warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll 1
    for (int row = 0; row < kRows * bodies; ++row) {
      const bool inside = warp + row * kWarps < depth;
#pragma unroll
      for (int along = 0; along < kRowBytes; along += kWarpBytes)
        if (along / kFloatBytes < left)
          cp_async_4_or_zero(at + stage + row * kWarps * kRowBytes + along, next + row * pitch + along,
                             inside);
    }
  }
};

// A warp takes 8 steps of k of 4 neighbours of the panel: whole sectors of global memory. Quads of a row of
// shared memory stand where the step of k puts them (quad ^ k % 8), so that the 32 floats meet 32 banks.
template <typename Tile, int extent, int bodies>
struct TurnCopy {
  static constexpr bool kSwizzled = true, kWhole = true;
  static constexpr int kWarps = Tile::kThreads / 32;
  static constexpr int kQuads = extent / (kQuad * kWarps) / bodies;  // that a warp copies in a body
  static constexpr int kOctetBytes = 8 * kFloatBytes, kDepthBytes = Tile::kTileK * kFloatBytes;
  static constexpr int kPassQuads = least(kQuads, kRun * 8 < Tile::kTileK ? 1 : kRun * 8 / Tile::kTileK);
  static constexpr int kBodyPasses = kQuads / kPassQuads;
  // Quads that differ in what the swizzle does not touch are a constant apart.
  static constexpr int kPhases = kWarps < 8 ? 8 / kWarps : 1;
  static constexpr int kQuadBytes = kWarps * kQuad * kFloatBytes;  // from a warp's quad to its next
  static_assert(kBodyPasses * kPassQuads * kQuad * kWarps * bodies == extent);
  static_assert(kPhases <= 2 && kWarps * kPhases % 8 == 0 && kQuads % kPhases == 0 && Tile::kTileK % 8 == 0);

  const char* next;    // in this thread's row of the quad to come, and in the first eight steps of k
  std::int64_t pitch;  // bytes from one of its rows to the next
  SharedAddress at[kPhases];
  std::int32_t left;

  __device__ TurnCopy(const float* matrix, std::int64_t ld, std::int64_t along, std::int64_t k,
                      std::int32_t panel_left, float* first_stage) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int step = lane % 8, row = lane / 8;
    next = reinterpret_cast<const char*>(matrix + (along + warp * kQuad + row) * ld + k + step);
    pitch = kWarps * kQuad * ld * kFloatBytes;
#pragma unroll
    for (int phase = 0; phase < kPhases; ++phase)
      at[phase] =
          shared_address(first_stage + step * extent + ((warp + phase * kWarps) ^ step) * kQuad + row);
    left = panel_left - (warp * kQuad + row);
  }

  __device__ void pass(int stage, int body, int index) const {
#pragma unroll
    for (int quad = 0; quad < kPassQuads; ++quad) {
      const int of_body = index * kPassQuads + quad;
      const SharedAddress to = at[of_body % kPhases] + stage + body * kQuads * kQuadBytes;
#pragma unroll
      for (int along = 0; along < kDepthBytes; along += kOctetBytes)
        cp_async_4(to + (of_body / kPhases * kPhases * kQuadBytes + along * extent),
                   next + quad * pitch + along);
    }
  }
  __device__ void advance() {
    next += kPassQuads * pitch;
  }
  __device__ void end_stage() {
    next += kDepthBytes - kQuads * bodies * pitch;
  }

  __device__ void careful(int stage, std::int32_t depth) const {
    const int step = static_cast<int>(threadIdx.x) % 8;
#pragma unroll 1
    for (int quad = 0; quad < kQuads * bodies && quad * (kWarps * kQuad) < left; ++quad) {
      const SharedAddress to =
          (quad % kPhases == 0 ? at[0] : at[kPhases - 1]) + stage + quad / kPhases * kPhases * kQuadBytes;
#pragma unroll
      for (int along = 0; along < kDepthBytes; along += kOctetBytes)
        cp_async_4_or_zero(to + along * extent, next + quad * pitch + along,
                           along / kFloatBytes + step < depth);
    }
  }
};

}  // namespace gemmhoist::kernels
