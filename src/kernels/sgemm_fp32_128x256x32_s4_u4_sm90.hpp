// Descriptor of sgemm_fp32_128x256x32_s4_u4_sm90; the kernel and how it works:
// sgemm_fp32_128x256x32_s4_u4_sm90.cu.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

inline constexpr KernelDescriptor descriptor_sgemm_fp32_128x256x32_s4_u4_sm90{
    .name = "sgemm_fp32_128x256x32_s4_u4_sm90",
    .role = KernelRole::gemm,
    .precision = Precision::fp32,
    .min_arch = 90,
    .tile_m = 128,
    .tile_n = 256,
    .tile_k = 32,
    .stages = 4,
    .threads = 256,
    .shared_bytes = 4 * ((128 + 256) * 32 * 4 + 2 * 8),
    .blocks_per_sm = 1,
};

}  // namespace gemmhoist::kernels
