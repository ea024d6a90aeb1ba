// sgemm_tf32_128x128x32_s3_sm80: C = alpha (A B + C) with operands rounded to 11 bits, on the tensor cores.
// From sm_80 on (mma.sync); where a better kernel is, that goes first.
//
// Contract: PreparedGemmKernelParams without ranges and out_of_range; images by prepare_tf32. Edges of C are
// handled here; without accumulate C is not read.
//
// Order of summation: by the tensor cores, eight steps of k at a time, in order, over all of k; they
// truncate.
//
// Picture: block 128 x 128; eight warps of 64 rows by 32 columns, products of 16 x 8 x 8 (mma_gemm.cuh).
//
// Resources: 256 threads, 168 registers or fewer, no spills; 96 KiB of shared memory in three stages; one
// block an SM. Stages: 32 KiB, eight cp.async a thread; barriers as told in mma_gemm.cuh. Bound: the tensor
// cores.
//
// Measured on an H200 with CUDA 13.0, preparing of both operands counted, check_kernels --no-check --bench
// --only (bench/results/2026-11-30-tensor-cores.md): n = 8192 172 to 174 TFLOP/s, half of cuBLAS tf32, which
// uses wgmma. No GPU of sm_80 was at hand.
#include "kernels/mma_gemm.cuh"
#include "kernels/sgemm_tf32_128x128x32_s3_sm80.hpp"

extern "C" __global__ void __launch_bounds__(256, 1)
    sgemm_tf32_128x128x32_s3_sm80(const __grid_constant__ gemmhoist::PreparedGemmKernelParams params) {
  using namespace gemmhoist::kernels;
  gemm_mma<MmaTile<descriptor_sgemm_tf32_128x128x32_s3_sm80>>(params, 12);
}
