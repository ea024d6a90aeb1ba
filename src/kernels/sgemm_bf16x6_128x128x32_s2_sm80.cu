// sgemm_bf16x6_128x128x32_s2_sm80: C = alpha (A B + C) by six products of bfloat16 pieces on the tensor
// cores, no less accurate than fp32. From sm_80 on (mma.sync); where a better kernel is, that goes first.
//
// Contract: as sgemm_bf16x6_128x128x32_s4_sm90a, with C holding unscaled sums on the way where k > 1024.
//
// Order of summation: 16 steps of k in the tensor cores, small to large, from zero; 64 such sums added in
// order in registers, rounding to nearest; sums of 1024 steps in C. The same bits on every run.
//
// Picture: block 128 x 128; eight warps of 64 rows by 32 columns, products of 16 x 8 x 16 (mma_gemm.cuh).
//
// Resources: 256 threads, up to 242 registers, no spills (a test reads the compiler's report); 96 KiB of
// shared memory in two stages, which sm_86, 89 and 120 have too; one block an SM.
//
// Stages: 48 KiB, twelve cp.async a thread; barriers as told in mma_gemm.cuh.
//
// Bound: the tensor cores. GeForce parts halve their rate with fp32 sums: sm_86, 89 and 120 have 128 FP32
// lanes an SM against 256 products of bfloat16 a cycle, so that six of them lose to fp32, and a plan should
// not choose this.
//
// Measured on an H200 with CUDA 13.0, preparing of both operands counted, check_kernels --no-check --bench
// --only (bench/results/2026-11-30-tensor-cores.md): n = 8192 61 TFLOP/s, 1.14 to 1.22 of cuBLAS fp32, from
// mma.sync, for which Hopper has about half the rate of wgmma. No GPU of sm_80 was at hand.
//
// Tried and dropped: all fragments of a step first, or both steps of a stage unrolled: 16 bytes of spills.
#include "kernels/mma_gemm.cuh"
#include "kernels/sgemm_bf16x6_128x128x32_s2_sm80.hpp"

extern "C" __global__ void __launch_bounds__(256, 1)
    sgemm_bf16x6_128x128x32_s2_sm80(const __grid_constant__ gemmhoist::PreparedGemmKernelParams params) {
  using namespace gemmhoist::kernels;
  gemm_mma<MmaTile<descriptor_sgemm_bf16x6_128x128x32_s2_sm80>>(params, 12);
}
