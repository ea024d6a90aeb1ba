// Descriptor of sgemm_bf16x6_128x128x32_s2_sm80; the kernel and how it works:
// sgemm_bf16x6_128x128x32_s2_sm80.cu.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

inline constexpr KernelDescriptor descriptor_sgemm_bf16x6_128x128x32_s2_sm80{
    .name = "sgemm_bf16x6_128x128x32_s2_sm80",
    .role = KernelRole::gemm_prepared,
    .precision = Precision::bf16x6,
    .min_arch = 80,
    .tile_m = 128,
    .tile_n = 128,
    .tile_k = 32,
    .stages = 2,
    .threads = 256,
    .shared_bytes = 2 * 2 * 24 * 1024 + 16,
    .blocks_per_sm = 1,
};

}  // namespace gemmhoist::kernels
