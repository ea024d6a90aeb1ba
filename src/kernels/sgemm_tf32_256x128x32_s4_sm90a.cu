// sgemm_tf32_256x128x32_s4_sm90a: C = alpha (A B + C) with operands rounded to 11 bits, on the tensor cores.
// For sm_90a alone (wgmma).
//
// Contract: PreparedGemmKernelParams without ranges and out_of_range; images by prepare_tf32, A's padded to
// 256 rows. Edges of C are handled here; without accumulate C is not read. Inf and NaN behave as in fp32.
//
// Order of summation: by the tensor cores, eight steps of k at a time, in order, over all of k; they
// truncate.
//
// Picture: block 256 x 128; two warpgroups of 64 columns by 256 rows each, products of 64 x 256 x 8
// (wgmma_gemm.cuh: to wgmma the columns of C are rows).
//
// Resources: 384 threads: one that copies, 256 that multiply, with 232 registers each taken from the rest,
// 128 of them sums. 192 KiB of shared memory in four stages, one block an SM. No spills (a test reads the
// report).
//
// Stages: 48 KiB, three bulk copies of a unit's 16 KiB; barriers as told in wgmma_gemm.cuh. One group of
// products is always under way while the next stage is waited for.
//
// Bound: the tensor cores, and the board's power. A stage is 1024 cycles of products against 48 KiB from the
// L2, 48 bytes a cycle and SM. ncu: tensor pipe busy 93 % of the time, L2 77 %; about 690 of 700 W.
//
// Measured on an H200 with CUDA 13.0, square products, preparing of both operands counted, in three runs of
// check_kernels --no-check --bench (bench/results/2026-11-30-tensor-cores.md): n = 4096 291 to 327, 8192 316
// to 340, 16384 331 to 357 TFLOP/s; of cuBLAS tf32 in the same layout and run 0.84 to 0.89, 0.86 to 0.96,
// 0.96 to 1.10, and from NT, where cuBLAS is slow, 1.2 to 1.7. Alone, from images: 345 to 396.
//
// Tried and dropped: clusters of two that share their rows by multicast, equal within the spread (0.96
// to 1.00 of cuBLAS at n = 8192, 1.04 to 1.12 at 16384, 0.85 to 0.88 at 4096); with a releasing arrival at
// the neighbour's barrier, a fence, a fifth slower.
#include "kernels/sgemm_tf32_256x128x32_s4_sm90a.hpp"
#include "kernels/wgmma_gemm.cuh"

extern "C" __global__ void __launch_bounds__(384, 1)
    sgemm_tf32_256x128x32_s4_sm90a(const __grid_constant__ gemmhoist::PreparedGemmKernelParams params) {
  using namespace gemmhoist::kernels;
  using Tile = WgmmaTile<descriptor_sgemm_tf32_256x128x32_s4_sm90a>;
  gemm_wgmma<Tile, Tf32Math<Tile>>(params, 8);
}
