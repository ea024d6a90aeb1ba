// sgemm_fp32_128x128x8_s2_sm75: C = alpha (A B + C), strict fp32, without cp.async: the kernel of sm_75, and
// plain enough to run on whatever comes.
//
// Contract: GemmKernelParams. Panels are K-outer and padded, so nothing is predicated before the epilogue;
// edges of C are handled there; without accumulate C is not read. Each element is summed over k in order, one
// FMA a term, from +0.
//
// Picture: block 128 x 128 = 2 x 4 warps of 64 x 32; lanes 8 x 4, each 8 x 8 outputs (simt_tile.cuh).
//
// Resources: 256 threads, 16384 bytes of shared memory, at most 128 registers and no spills (a test reads the
// compiler's report), two blocks an SM.
//
// Stages: two of 8 steps. Each thread reads its one quad of A and one of B of tile t + 1 into registers at
// the first step of tile t, and stores them into the other stage at the last. The barrier after the store
// tells that tile t + 1 is complete. That stage's last readers, at tile t - 1, are past: they met the barrier
// before.
//
// Bound: FMA issue. A step is 64 FMA against 4 shared loads of 16 bytes a thread; the loads of 8 warps take
// 64 of the 128 cycles that their FMAs take on 128 lanes (sm_75 has 64: 256 cycles).
//
// Measured on an H200 with CUDA 13.0, square products, check_kernels --no-check --bench
// (bench/results/2026-11-30-kernels.md): n = 512 5.1, 1024 21.7, 2048 49.1, 4096 50.3, 8192 50.8 TFLOP/s;
// 0.51, 0.63, 0.97, 0.98, 0.95 of cuBLAS 13.
#include "kernels/sgemm_fp32_128x128x8_s2_sm75.hpp"
#include "kernels/simt_tile.cuh"

namespace gemmhoist::kernels {

struct Tile128x128x8 {
  static constexpr const KernelDescriptor& kFacts = descriptor_sgemm_fp32_128x128x8_s2_sm75;
  using Type = SimtTile<kFacts.tile_m, kFacts.tile_n, kFacts.tile_k, kFacts.stages, kFacts.threads, 8, 8>;
  static_assert(Type::kSharedBytes == kFacts.shared_bytes);
  static_assert(Type::kTileM * Type::kTileK == kQuad * Type::kThreads && Type::kTileN == Type::kTileM,
                "a stage is one quad of each operand a thread");
  static constexpr std::uint32_t kGroup = 16;
};

__device__ __forceinline__ void gemm_register_staged(const GemmKernelParams& params) {
  using Tile = Tile128x128x8::Type;
  extern __shared__ float4 shared_memory[];
  float* const shared = reinterpret_cast<float*>(shared_memory);
  constexpr int kTileK = Tile::kTileK, kBOffset = Tile::kTileM * kTileK;

  const BlockTile block(params, Tile::kTileM, Tile::kTileN, Tile128x128x8::kGroup);
  const ThreadPlace<Tile> place;
  const int tiles = params.k / kTileK;

  constexpr int kQuadsARow = Tile::kTileM / kQuad;
  const int copy_row = static_cast<int>(threadIdx.x) / kQuadsARow;
  const int copy_quad = static_cast<int>(threadIdx.x) % kQuadsARow;
  const float* a_next = params.a + block.row + copy_row * params.lda + copy_quad * kQuad;
  const float* b_next = params.b + block.col + copy_row * params.ldb + copy_quad * kQuad;
  float* const a_landing = shared + copy_row * Tile::kTileM + copy_quad * kQuad;
  float* const b_landing = a_landing + kBOffset;

  float4 a_quad{}, b_quad{};
  const auto fetch = [&] {
    a_quad = *reinterpret_cast<const float4*>(a_next);
    b_quad = *reinterpret_cast<const float4*>(b_next);
    a_next += kTileK * params.lda;
    b_next += kTileK * params.ldb;
  };
  const auto land = [&](int stage) {
    *reinterpret_cast<float4*>(a_landing + stage) = a_quad;
    *reinterpret_cast<float4*>(b_landing + stage) = b_quad;
  };

  if (tiles > 0) fetch();
  land(0);
  __syncthreads();

  Accumulator<Tile> sum;
  sum.clear();
  Fragment<Tile> fragment[2];
  static_assert((Tile::kStageFloats & (Tile::kStageFloats - 1)) == 0, "xor names the other of two stages");
  int stage = 0;  // offset of the one being read
  const float* a_rows = shared + place.row;
  const float* b_rows = shared + kBOffset + place.col;
  fragment[0].load(a_rows, b_rows);

  for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
    for (int step = 0; step < kTileK; ++step) {
      if (step == 0 && tile + 1 < tiles) fetch();
      if (step == kTileK - 1) {
        stage ^= Tile::kStageFloats;
        land(stage);  // after the last tile, the last quads once more: nobody reads them
        __syncthreads();
        a_rows = shared + stage + place.row;
        b_rows = shared + kBOffset + stage + place.col;
      }
      const int row = (step + 1) % kTileK;
      fragment[(step + 1) % 2].load(a_rows + row * Tile::kTileM, b_rows + row * Tile::kTileN);
      sum.multiply_add(fragment[step % 2]);
    }
  }

  sum.store(place, params.c + block.row + block.col * params.ldc, params.ldc, block.rows, block.cols,
            params.alpha, params.accumulate != 0);
}

}  // namespace gemmhoist::kernels

extern "C" __global__ void __launch_bounds__(256, 2)
    sgemm_fp32_128x128x8_s2_sm75(const __grid_constant__ gemmhoist::GemmKernelParams params) {
  gemmhoist::kernels::gemm_register_staged(params);
}
