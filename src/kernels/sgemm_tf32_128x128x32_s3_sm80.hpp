// Descriptor of sgemm_tf32_128x128x32_s3_sm80; the kernel and how it works: sgemm_tf32_128x128x32_s3_sm80.cu.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

inline constexpr KernelDescriptor descriptor_sgemm_tf32_128x128x32_s3_sm80{
    .name = "sgemm_tf32_128x128x32_s3_sm80",
    .role = KernelRole::gemm_prepared,
    .precision = Precision::tf32,
    .min_arch = 80,
    .tile_m = 128,
    .tile_n = 128,
    .tile_k = 32,
    .stages = 3,
    .threads = 256,
    .shared_bytes = 3 * 2 * 16 * 1024 + 16,
    .blocks_per_sm = 1,
};

}  // namespace gemmhoist::kernels
