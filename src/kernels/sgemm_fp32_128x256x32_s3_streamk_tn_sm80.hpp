// Descriptor of sgemm_fp32_128x256x32_s3_streamk_tn_sm80; the kernel and how it works:
// sgemm_fp32_128x256x32_s3_streamk_tn_sm80.cu.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

inline constexpr KernelDescriptor descriptor_sgemm_fp32_128x256x32_s3_streamk_tn_sm80{
    .name = "sgemm_fp32_128x256x32_s3_streamk_tn_sm80",
    .role = KernelRole::gemm_stream_k,
    .precision = Precision::fp32,
    .min_arch = 80,
    .tile_m = 128,
    .tile_n = 256,
    .tile_k = 32,
    .stages = 3,
    .threads = 256,
    .shared_bytes = 3 * (128 + 256) * 32 * 4,
    .blocks_per_sm = 1,
    .a_k_inner = true,
    .b_k_inner = true,
    .any_alignment = true,
};

}  // namespace gemmhoist::kernels
