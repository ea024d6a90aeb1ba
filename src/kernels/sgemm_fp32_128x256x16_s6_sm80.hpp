// Descriptor of sgemm_fp32_128x256x16_s6_sm80; the kernel and how it works: sgemm_fp32_128x256x16_s6_sm80.cu.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

inline constexpr KernelDescriptor descriptor_sgemm_fp32_128x256x16_s6_sm80{
    .name = "sgemm_fp32_128x256x16_s6_sm80",
    .role = KernelRole::gemm,
    .precision = Precision::fp32,
    .min_arch = 80,
    .tile_m = 128,
    .tile_n = 256,
    .tile_k = 16,
    .stages = 6,
    .threads = 256,
    .shared_bytes = 6 * (128 + 256) * 16 * 4,
    .blocks_per_sm = 1,
};

}  // namespace gemmhoist::kernels
