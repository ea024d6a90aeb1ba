// sgemm_bf16x6_128x128x32_s4_sm90a: C = alpha (A B + C) by six products of bfloat16 pieces on the tensor
// cores, no less accurate than fp32. For sm_90a alone (wgmma).
//
// Contract: PreparedGemmKernelParams; images by prepare_bf16x6. Edges of C are handled here; images are
// padded to whole units. Without accumulate C is not read before it is written; where k > 2048 it holds
// unscaled sums on the way. A tile out of range (magnitude_range.hpp: Inf, NaN, a piece, product or sum that
// could leave the range) is marked in out_of_range and left as it was. Integers whose sums stay under 2^24
// are exact.
//
// Order of summation: 32 steps of k in the tensor cores, small to large (middle middle, high low, low high,
// high middle, middle high, high high), from zero; these are added in order, rounding to nearest, 64 of them
// in a register; such sums of 2048 steps in C. The same bits on every run.
//
// Picture: block 128 x 128; two warpgroups of 64 columns by 128 rows each, products of 64 x 128 x 16
// (wgmma_gemm.cuh: to wgmma the columns of C are rows).
//
// Resources: 384 threads: one that copies, 256 that multiply, with 232 registers each taken from the rest:
// two sets of 64 accumulators, so that one is at work while the other is added, and 64 sums. 192 KiB of
// shared memory in four stages, one block an SM. No spills (a test reads the compiler's report).
//
// Stages: 48 KiB, two bulk copies of a unit's 24 KiB; barriers as told in wgmma_gemm.cuh.
//
// Bound: the tensor cores, and the board's power. A stage is 1536 cycles of products against 48 KiB from the
// L2, 32 bytes a cycle and SM. ncu: tensor pipe busy 95.8 % of the time, at 1.6 of 1.98 GHz; about 690 of 700
// W.
//
// Measured on an H200 with CUDA 13.0, square products, preparing of both operands counted, check_kernels
// --no-check --bench (bench/results/2026-11-30-tensor-cores.md): n = 4096 108, 8192 106 to 112, 16384 106 to
// 107 TFLOP/s: 2.0 to 2.2 of cuBLAS fp32 in every layout. relF over cuBLAS fp32's, n = 8192: U(-1,1) 0.17,
// U(0,1) 0.18, U(-1,1) x 2^(-30..30) 0.56.
//
// Tried and dropped, each in one run with the kernel as it then was (that page's -clusters.csv, where it
// has them): all sums over k in registers, 116 to 122 TFLOP/s, but at n = 8192 no better than cuBLAS where
// exponents are wide; sums to C after 1024 steps, and each quad of C loaded only behind the store before
// it, slower (neither comparison was kept); clusters of two that share their rows by multicast: 117 to 121
// at 4096, 117 to 118 at 8192, 122 to 116 at 16384 alone, equal within the spread with preparing; with a
// releasing arrival at the neighbour's barrier, a fence, 109.
//
// Idea of the pieces: three bfloat16 terms for a float (Henry, Tang, Heinecke, 2019); of promoting sums out
// of the tensor cores: Ootomo and Yokota, 2022.
#include "kernels/sgemm_bf16x6_128x128x32_s4_sm90a.hpp"
#include "kernels/wgmma_gemm.cuh"

extern "C" __global__ void __launch_bounds__(384, 1)
    sgemm_bf16x6_128x128x32_s4_sm90a(const __grid_constant__ gemmhoist::PreparedGemmKernelParams params) {
  using namespace gemmhoist::kernels;
  using Tile = WgmmaTile<descriptor_sgemm_bf16x6_128x128x32_s4_sm90a>;
  gemm_wgmma<Tile, Bf16x6Math<Tile>>(params, 12);
}
