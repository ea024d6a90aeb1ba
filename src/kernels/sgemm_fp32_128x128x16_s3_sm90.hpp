// Descriptor of sgemm_fp32_128x128x16_s3_sm90; the kernel and how it works: sgemm_fp32_128x128x16_s3_sm90.cu.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

inline constexpr KernelDescriptor descriptor_sgemm_fp32_128x128x16_s3_sm90{
    .name = "sgemm_fp32_128x128x16_s3_sm90",
    .role = KernelRole::gemm,
    .precision = Precision::fp32,
    .min_arch = 90,
    .tile_m = 128,
    .tile_n = 128,
    .tile_k = 16,
    .stages = 3,
    .threads = 128,
    .shared_bytes = 3 * ((128 + 128) * 16 * 4 + 2 * 8),
    .blocks_per_sm = 2,
};

}  // namespace gemmhoist::kernels
