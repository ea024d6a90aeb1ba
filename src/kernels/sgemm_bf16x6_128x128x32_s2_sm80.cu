// sgemm_bf16x6_128x128x32_s2_sm80
#include "kernels/mma_gemm.cuh"
#include "kernels/sgemm_bf16x6_128x128x32_s2_sm80.hpp"

extern "C" __global__ void __launch_bounds__(256, 1)
    sgemm_bf16x6_128x128x32_s2_sm80(const __grid_constant__ gemmhoist::PreparedGemmKernelParams params) {
  using namespace gemmhoist::kernels;
  gemm_mma<MmaTile<descriptor_sgemm_bf16x6_128x128x32_s2_sm80>>(params, 12);
}
