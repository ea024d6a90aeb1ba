// Descriptor of transpose_64x64_sm75; the kernel and how it works: transpose_64x64_sm75.cu.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

inline constexpr KernelDescriptor descriptor_transpose_64x64_sm75{
    .name = "transpose_64x64_sm75",
    .role = KernelRole::transpose,
    .precision = Precision::fp32,
    .min_arch = 75,
    .tile_m = 64,
    .tile_n = 64,
    .tile_k = 1,
    .stages = 1,
    .threads = 256,
    .shared_bytes = 64 * (64 + 1) * 4,
    .blocks_per_sm = 3,
};

}  // namespace gemmhoist::kernels
