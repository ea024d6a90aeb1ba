// Descriptor of sgemm_fp32_64x128x32_s2_streamk_tt_sm90a; the kernel and how it works:
// sgemm_fp32_64x128x32_s2_streamk_tt_sm90a.cu.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

inline constexpr KernelDescriptor descriptor_sgemm_fp32_64x128x32_s2_streamk_tt_sm90a{
    .name = "sgemm_fp32_64x128x32_s2_streamk_tt_sm90a",
    .role = KernelRole::gemm_stream_k,
    .precision = Precision::fp32,
    .min_arch = 90,
    .tile_m = 64,
    .tile_n = 128,
    .tile_k = 32,
    .stages = 2,
    .threads = 128,
    .shared_bytes = 2 * (64 + 128) * 32 * 4,
    .blocks_per_sm = 4,
    .arch_specific = true,
    .a_k_inner = true,
};

}  // namespace gemmhoist::kernels
