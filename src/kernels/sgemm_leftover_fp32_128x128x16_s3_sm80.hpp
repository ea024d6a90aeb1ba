// Descriptor of sgemm_leftover_fp32_128x128x16_s3_sm80; the kernel and how it works:
// sgemm_leftover_fp32_128x128x16_s3_sm80.cu.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

inline constexpr KernelDescriptor descriptor_sgemm_leftover_fp32_128x128x16_s3_sm80{
    .name = "sgemm_leftover_fp32_128x128x16_s3_sm80",
    .role = KernelRole::gemm_leftover,
    .precision = Precision::bf16x6,
    .min_arch = 80,
    .tile_m = 128,
    .tile_n = 128,
    .tile_k = 16,
    .stages = 3,
    .threads = 128,
    .shared_bytes = 3 * (128 + 128) * 16 * 4,
    .blocks_per_sm = 2,
};

}  // namespace gemmhoist::kernels
