// Descriptor of prepare_bf16x6_128x32_sm80; the kernel and how it works: prepare_bf16x6_128x32_sm80.cu.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

inline constexpr KernelDescriptor descriptor_prepare_bf16x6_128x32_sm80{
    .name = "prepare_bf16x6_128x32_sm80",
    .role = KernelRole::prepare,
    .precision = Precision::bf16x6,
    .min_arch = 80,
    .tile_m = 128,
    .tile_n = 32,
    .tile_k = 1,
    .stages = 1,
    .threads = 256,
    .shared_bytes = 64,
    .blocks_per_sm = 4,
};

}  // namespace gemmhoist::kernels
