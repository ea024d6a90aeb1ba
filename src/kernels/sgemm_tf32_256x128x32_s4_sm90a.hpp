// Descriptor of sgemm_tf32_256x128x32_s4_sm90a; the kernel and how it works:
// sgemm_tf32_256x128x32_s4_sm90a.cu.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

inline constexpr KernelDescriptor descriptor_sgemm_tf32_256x128x32_s4_sm90a{
    .name = "sgemm_tf32_256x128x32_s4_sm90a",
    .role = KernelRole::gemm_prepared,
    .precision = Precision::tf32,
    .min_arch = 90,
    .tile_m = 256,
    .tile_n = 128,
    .tile_k = 32,
    .stages = 4,
    .threads = 384,
    .shared_bytes = 4 * 3 * 16 * 1024 + 2 * 4 * 8 + 64,
    .blocks_per_sm = 1,
    .arch_specific = true,
};

}  // namespace gemmhoist::kernels
