// Descriptor of sgemm_fp32_128x128x8_s2_sm75; the kernel and how it works: sgemm_fp32_128x128x8_s2_sm75.cu.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

inline constexpr KernelDescriptor descriptor_sgemm_fp32_128x128x8_s2_sm75{
    .name = "sgemm_fp32_128x128x8_s2_sm75",
    .role = KernelRole::gemm,
    .precision = Precision::fp32,
    .min_arch = 75,
    .tile_m = 128,
    .tile_n = 128,
    .tile_k = 8,
    .stages = 2,
    .threads = 256,
    .shared_bytes = 2 * (128 + 128) * 8 * 4,
    .blocks_per_sm = 2,
};

}  // namespace gemmhoist::kernels
