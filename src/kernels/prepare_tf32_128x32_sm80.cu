// prepare_tf32_128x32_sm80: the image of an operand for tf32 products. From sm_80 on.
//
// Contract: PrepareKernelParams, without ranges; reads the operand once, in either order, any alignment that
// floats have; zero-fills the image up to padded_rows and padded_k itself. Values are rounded to 11 bits, to
// nearest, ties away from zero, never up to infinity; the tensor cores would cut them off instead, which
// costs another bit. Infinities and NaN stay what they are.
//
// Picture: a block a unit of 128 rows by 32 steps of k, a thread four runs of four steps (prepare_unit.cuh).
// A plane's row is 128 bytes; 16-byte chunk c of row r stands at c ^ (r % 8): wgmma's 128-byte swizzle.
//
// Resources: 256 threads, no shared memory. Bound: memory, 8 bytes an element.
//
// Measured on an H200 with CUDA 13.0, both operands, check_kernels --no-check --bench --only sgemm_tf32
// (bench/results/2026-11-30-tensor-cores.md): n = 4096 0.078, 8192 0.283, 16384 1.10 ms: 3.4 to 3.9 TB/s.
#include "kernels/prepare_tf32_128x32_sm80.hpp"
#include "kernels/prepare_unit.cuh"
#include "kernels/warp.cuh"

namespace gemmhoist::kernels {

__device__ __forceinline__ float round_to_tf32(float value) {
  constexpr std::uint32_t kDropped = 0x1FFFu, kHalf = 0x1000u, kInfinity = 0x7F800000u;
  const std::uint32_t bits = bits_of(value), magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > kInfinity) return float_of(bits | 0x00400000u);
  const std::uint32_t up = magnitude + kHalf < kInfinity ? kHalf : 0u;
  return float_of((bits + up) & ~kDropped);
}

}  // namespace gemmhoist::kernels

extern "C" __global__ void __launch_bounds__(256, 4)
    prepare_tf32_128x32_sm80(const __grid_constant__ gemmhoist::PrepareKernelParams params) {
  using namespace gemmhoist::kernels;
  using Image = OperandImage<gemmhoist::Precision::tf32>;
  constexpr int kDepth = 4, kRunsARow = gemmhoist::kImageK / kDepth, kRunsAPass = 4;
  constexpr int kRowsAPass = descriptor_prepare_tf32_128x32_sm80.threads / kRunsAPass;
  constexpr int kPassesDown = gemmhoist::kImageRows / kRowsAPass,
                kPasses = kPassesDown * kRunsARow / kRunsAPass;
  static_assert(Image::kRowBytes == 128 && kRowsAPass % 8 == 0);

  const PreparedUnit unit(params);
  const int thread = static_cast<int>(threadIdx.x);
  const int run0 = thread % kRunsAPass, row0 = thread / kRunsAPass;
  float value[kPasses][kDepth];
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass)
    read_run(params, unit.row0 + row0 + pass % kPassesDown * kRowsAPass,
             unit.k0 + (run0 + pass / kPassesDown * kRunsAPass) * kDepth, value[pass]);

  char* const image = static_cast<char*>(params.image) + unit.index * Image::kUnitBytes;
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    const int row = row0 + pass % kPassesDown * kRowsAPass, run = run0 + pass / kPassesDown * kRunsAPass;
    const float4 rounded = make_float4(round_to_tf32(value[pass][0]), round_to_tf32(value[pass][1]),
                                       round_to_tf32(value[pass][2]), round_to_tf32(value[pass][3]));
    *reinterpret_cast<float4*>(image + row * Image::kRowBytes + ((run ^ (row % 8)) * 16)) = rounded;
  }
}
