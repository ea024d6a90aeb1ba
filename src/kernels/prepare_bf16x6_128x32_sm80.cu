// prepare_bf16x6_128x32_sm80: the image of an operand for products of bfloat16 pieces. From sm_80 on.
//
// Contract: PrepareKernelParams; reads the operand once, in either order, any alignment that floats have;
// zero-fills the image up to padded_rows and padded_k itself, so that the source needs no padding. Each value
// becomes its three pieces, rounded to nearest even: exact for what bf16x6_in_range admits. Ranges are
// written, not merged: nothing has to be cleared before.
//
// Picture: a block a unit of 128 rows by 32 steps of k, a thread two runs of eight steps (prepare_unit.cuh).
// Bytes 0 to 63 of a plane's row hold its 32 steps; 16-byte chunk c of row r stands at c ^ (r / 2 % 4), which
// is what wgmma's 64-byte swizzle reads and what makes ldmatrix free of conflicts.
//
// Resources: 256 threads, 64 bytes of shared memory for the ranges of its warps; one barrier before they
// meet. Bound: memory, 4 bytes read and 6 written an element.
//
// Measured on an H200 with CUDA 13.0, both operands, check_kernels --no-check --bench --only sgemm_bf16x6
// (bench/results/2026-11-30-tensor-cores.md): n = 4096 0.098, 8192 0.347, 16384 1.35 ms: 3.4 to 4.0 TB/s.
#include "kernels/bf16_pieces.cuh"
#include "kernels/magnitude_range.hpp"
#include "kernels/prepare_bf16x6_128x32_sm80.hpp"
#include "kernels/prepare_unit.cuh"
#include "kernels/warp.cuh"

namespace gemmhoist::kernels {

struct PieceRun {
  std::uint32_t word[4];  // eight pieces
};

__device__ __forceinline__ void split(const float (&value)[8], PieceRun (&piece)[3]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float x = value[2 * i], y = value[2 * i + 1];
#pragma unroll
    for (int p = 0; p < 3; ++p) {
      const std::uint32_t pair = bf16_pair(x, y);
      piece[p].word[i] = pair;
      // Exact: the rest has no more bits than the value had.
      x -= float_of(pair << 16);
      y -= float_of(pair & 0xFFFF0000u);
    }
  }
}

__device__ __forceinline__ void widen(MagnitudeRange& range, const float (&value)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const std::uint32_t magnitude = bits_of(value[i]) & 0x7FFFFFFFu;
    if (magnitude > range.greatest) range.greatest = magnitude;
    // Zero less one is the largest of all.
    if (magnitude - 1 < range.least - 1) range.least = magnitude;
  }
}

}  // namespace gemmhoist::kernels

extern "C" __global__ void __launch_bounds__(256, 4)
    prepare_bf16x6_128x32_sm80(const __grid_constant__ gemmhoist::PrepareKernelParams params) {
  using namespace gemmhoist::kernels;
  using gemmhoist::MagnitudeRange;
  using Image = OperandImage<gemmhoist::Precision::bf16x6>;
  constexpr int kThreads = descriptor_prepare_bf16x6_128x32_sm80.threads, kWarps = kThreads / 32;
  constexpr int kDepth = 8, kRunsARow = gemmhoist::kImageK / kDepth, kRowsAPass = kThreads / kRunsARow;
  constexpr int kPasses = gemmhoist::kImageRows / kRowsAPass;
  static_assert(Image::kRowBytes == 64 && kRowsAPass % 8 == 0);
  static_assert(descriptor_prepare_bf16x6_128x32_sm80.shared_bytes == kWarps * sizeof(MagnitudeRange));
  extern __shared__ float4 shared_memory[];
  auto* const of_warp = reinterpret_cast<MagnitudeRange*>(shared_memory);

  const PreparedUnit unit(params);
  const int thread = static_cast<int>(threadIdx.x);
  const int run = thread % kRunsARow, row0 = thread / kRunsARow;
  float value[kPasses][kDepth];
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass)
    read_run(params, unit.row0 + row0 + pass * kRowsAPass, unit.k0 + run * kDepth, value[pass]);

  char* const image = static_cast<char*>(params.image) + unit.index * Image::kUnitBytes;
  MagnitudeRange range = kNoMagnitude;
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    const int row = row0 + pass * kRowsAPass;
    PieceRun piece[3];
    split(value[pass], piece);
    widen(range, value[pass]);
    char* const at = image + row * Image::kRowBytes + ((run ^ (row / 2 % 4)) * 16);
#pragma unroll
    for (int p = 0; p < 3; ++p) {
      const float4 words = make_float4(float_of(piece[p].word[0]), float_of(piece[p].word[1]),
                                       float_of(piece[p].word[2]), float_of(piece[p].word[3]));
      *reinterpret_cast<float4*>(at + p * Image::kPlaneBytes) = words;
    }
  }

  range = {warp_least(range.least), warp_greatest(range.greatest)};
  if (thread % 32 == 0) of_warp[thread / 32] = range;
  __syncthreads();
  if (thread != 0) return;
  for (int warp = 1; warp < kWarps; ++warp) {
    if (of_warp[warp].least < range.least) range.least = of_warp[warp].least;
    if (of_warp[warp].greatest > range.greatest) range.greatest = of_warp[warp].greatest;
  }
  params.ranges[unit.index] = range;
}
