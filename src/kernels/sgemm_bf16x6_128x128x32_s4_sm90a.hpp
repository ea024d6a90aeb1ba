// Descriptor of sgemm_bf16x6_128x128x32_s4_sm90a; the kernel and how it works:
// sgemm_bf16x6_128x128x32_s4_sm90a.cu.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

inline constexpr KernelDescriptor descriptor_sgemm_bf16x6_128x128x32_s4_sm90a{
    .name = "sgemm_bf16x6_128x128x32_s4_sm90a",
    .role = KernelRole::gemm_prepared,
    .precision = Precision::bf16x6,
    .min_arch = 90,
    .tile_m = 128,
    .tile_n = 128,
    .tile_k = 32,
    .stages = 4,
    .threads = 384,
    .shared_bytes = 4 * 2 * 24 * 1024 + 2 * 4 * 8 + 64,
    .blocks_per_sm = 1,
    .arch_specific = true,
};

}  // namespace gemmhoist::kernels
