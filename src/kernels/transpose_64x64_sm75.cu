// transpose_64x64_sm75: puts a landed chunk, whose contiguous dimension is k, into its place in a K-outer
// panel. From sm_75 on.
//
// Contract: TransposeKernelParams; any alignment of source and destination that floats have, any leading
// dimensions, any rows and columns; writes rows x cols and nothing else; values are moved bit for bit.
//
// Picture: block 64 x 64 elements. A warp reads 32 neighbours of one source row (128 bytes), and writes 32
// neighbours of one destination column; the turn happens in shared memory.
//
// Resources: 256 threads, 16640 bytes of shared memory, 16 loads under way a thread. A row of shared memory
// is one float longer than the tile, so that a warp that reads down a column meets 32 different banks.
//
// One barrier: the tile is complete. Bound: memory; 8 bytes an element.
//
// Measured on an H200 with CUDA 13.0, square products, check_kernels --no-check --bench
// (bench/results/2026-11-30-kernels.md): 512 x 512 318, 2048 x 2048 2811 (within the L2), 8192 x 8192 3770
// GB/s read and written.
#include "kernels/tile_order.hpp"
#include "kernels/transpose_64x64_sm75.hpp"

extern "C" __global__ void __launch_bounds__(256, 3)
    transpose_64x64_sm75(const __grid_constant__ gemmhoist::TransposeKernelParams params) {
  using namespace gemmhoist::kernels;
  constexpr int kTile = descriptor_transpose_64x64_sm75.tile_m, kPitch = kTile + 1;
  constexpr int kLinesAPass = descriptor_transpose_64x64_sm75.threads / kTile;
  static_assert(descriptor_transpose_64x64_sm75.tile_n == kTile &&
                kTile * kPitch * sizeof(float) == descriptor_transpose_64x64_sm75.shared_bytes);
  extern __shared__ float4 shared_memory[];
  float* const shared = reinterpret_cast<float*>(shared_memory);

  // Neighbouring blocks read on along the source's rows.
  const std::uint32_t tile_cols = tiles_over(params.cols, kTile);
  const std::int64_t row0 = static_cast<std::int64_t>(blockIdx.x / tile_cols) * kTile;
  const std::int64_t col0 = static_cast<std::int64_t>(blockIdx.x % tile_cols) * kTile;
  const int rows = static_cast<int>(params.rows - row0), cols = static_cast<int>(params.cols - col0);
  const int along = static_cast<int>(threadIdx.x) % kTile, line0 = static_cast<int>(threadIdx.x) / kTile;

  const float* const source = params.source + col0 + row0 * params.ld_source;
  float moved[kTile / kLinesAPass] = {};
#pragma unroll
  for (int i = 0; i < kTile / kLinesAPass; ++i) {
    const int row = line0 + i * kLinesAPass;
    if (row < rows && along < cols) moved[i] = source[along + row * params.ld_source];
  }
#pragma unroll
  for (int i = 0; i < kTile / kLinesAPass; ++i) shared[(line0 + i * kLinesAPass) * kPitch + along] = moved[i];
  __syncthreads();

  float* const destination = params.destination + row0 + col0 * params.ld_destination;
#pragma unroll
  for (int i = 0; i < kTile / kLinesAPass; ++i) {
    const int col = line0 + i * kLinesAPass;
    if (along < rows && col < cols)
      destination[along + col * params.ld_destination] = shared[along * kPitch + col];
  }
}
