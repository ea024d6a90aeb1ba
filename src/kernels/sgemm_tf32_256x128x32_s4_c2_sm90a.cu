// sgemm_tf32_256x128x32_s4_c2_sm90a
#include "kernels/sgemm_tf32_256x128x32_s4_c2_sm90a.hpp"
#include "kernels/wgmma_gemm.cuh"

extern "C" __global__ void __launch_bounds__(384, 1) __cluster_dims__(2, 1, 1)
    sgemm_tf32_256x128x32_s4_c2_sm90a(const __grid_constant__ gemmhoist::PreparedGemmKernelParams params) {
  using namespace gemmhoist::kernels;
  using Tile = WgmmaTile<descriptor_sgemm_tf32_256x128x32_s4_c2_sm90a>;
  gemm_wgmma<Tile, Tf32Math<Tile>>(params, 8);
}
