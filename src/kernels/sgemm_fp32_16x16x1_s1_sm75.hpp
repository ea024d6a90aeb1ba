// Descriptor of sgemm_fp32_16x16x1_s1_sm75; the kernel and how it works: sgemm_fp32_16x16x1_s1_sm75.cu.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

inline constexpr KernelDescriptor descriptor_sgemm_fp32_16x16x1_s1_sm75{
    .name = "sgemm_fp32_16x16x1_s1_sm75",
    .role = KernelRole::gemm_reference,
    .precision = Precision::fp32,
    .min_arch = 75,
    .tile_m = 16,
    .tile_n = 16,
    .tile_k = 1,
    .stages = 1,
    .threads = 256,
    .shared_bytes = 0,
    .blocks_per_sm = 4,
};

}  // namespace gemmhoist::kernels
