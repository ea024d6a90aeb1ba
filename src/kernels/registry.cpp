#include "kernels/registry.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>

#include "kernels/prepare_bf16x6_128x32_sm80.hpp"
#include "kernels/prepare_tf32_128x32_sm80.hpp"
#include "kernels/sgemm_bf16x6_128x128x32_s2_sm80.hpp"
#include "kernels/sgemm_bf16x6_128x128x32_s4_sm90a.hpp"
#include "kernels/sgemm_fp32_128x128x16_s3_sm80.hpp"
#include "kernels/sgemm_fp32_128x128x8_s2_sm75.hpp"
#include "kernels/sgemm_fp32_128x256x16_s6_sm80.hpp"
#include "kernels/sgemm_fp32_128x256x32_s3_streamk_nn_sm80.hpp"
#include "kernels/sgemm_fp32_128x256x32_s3_streamk_nt_sm80.hpp"
#include "kernels/sgemm_fp32_128x256x32_s3_streamk_tn_sm80.hpp"
#include "kernels/sgemm_fp32_128x256x32_s3_streamk_tt_sm80.hpp"
#include "kernels/sgemm_fp32_16x16x1_s1_sm75.hpp"
#include "kernels/sgemm_fp32_64x128x32_s2_streamk_nn_sm90a.hpp"
#include "kernels/sgemm_fp32_64x128x32_s2_streamk_nt_sm90a.hpp"
#include "kernels/sgemm_fp32_64x128x32_s2_streamk_tn_sm90a.hpp"
#include "kernels/sgemm_fp32_64x128x32_s2_streamk_tt_sm90a.hpp"
#include "kernels/sgemm_fp32_64x64x16_s3_sm80.hpp"
#include "kernels/sgemm_fp32_64x64x16_s3_streamk_nn_sm80.hpp"
#include "kernels/sgemm_fp32_64x64x16_s3_streamk_nt_sm80.hpp"
#include "kernels/sgemm_fp32_64x64x16_s3_streamk_tn_sm80.hpp"
#include "kernels/sgemm_fp32_64x64x16_s3_streamk_tt_sm80.hpp"
#include "kernels/sgemm_leftover_fp32_128x128x16_s3_sm80.hpp"
#include "kernels/sgemm_tf32_128x128x32_s3_sm80.hpp"
#include "kernels/sgemm_tf32_256x128x32_s4_sm90a.hpp"
#include "kernels/tile_order.hpp"
#include "kernels/transpose_64x64_sm75.hpp"

namespace gemmhoist::kernels {
namespace {

// Most capable first within a precision; what is no choice for a product comes last.
constexpr std::array kKnown{
    descriptor_sgemm_fp32_128x256x16_s6_sm80,
    descriptor_sgemm_fp32_128x128x16_s3_sm80,
    descriptor_sgemm_fp32_64x64x16_s3_sm80,
    descriptor_sgemm_fp32_128x128x8_s2_sm75,
    descriptor_transpose_64x64_sm75,
    descriptor_sgemm_fp32_16x16x1_s1_sm75,
    descriptor_sgemm_bf16x6_128x128x32_s4_sm90a,
    descriptor_sgemm_bf16x6_128x128x32_s2_sm80,
    descriptor_sgemm_tf32_256x128x32_s4_sm90a,
    descriptor_sgemm_tf32_128x128x32_s3_sm80,
    descriptor_prepare_bf16x6_128x32_sm80,
    descriptor_prepare_tf32_128x32_sm80,
    descriptor_sgemm_leftover_fp32_128x128x16_s3_sm80,
    descriptor_sgemm_fp32_128x256x32_s3_streamk_nt_sm80,
    descriptor_sgemm_fp32_128x256x32_s3_streamk_nn_sm80,
    descriptor_sgemm_fp32_128x256x32_s3_streamk_tn_sm80,
    descriptor_sgemm_fp32_128x256x32_s3_streamk_tt_sm80,
    descriptor_sgemm_fp32_64x128x32_s2_streamk_nt_sm90a,
    descriptor_sgemm_fp32_64x128x32_s2_streamk_nn_sm90a,
    descriptor_sgemm_fp32_64x128x32_s2_streamk_tn_sm90a,
    descriptor_sgemm_fp32_64x128x32_s2_streamk_tt_sm90a,
    descriptor_sgemm_fp32_64x64x16_s3_streamk_nt_sm80,
    descriptor_sgemm_fp32_64x64x16_s3_streamk_nn_sm80,
    descriptor_sgemm_fp32_64x64x16_s3_streamk_tn_sm80,
    descriptor_sgemm_fp32_64x64x16_s3_streamk_tt_sm80,
};

// The newest architecture group of the build; 0 without nvcc.
constexpr std::int32_t kNewestGroup = GEMMHOIST_NEWEST_GROUP;

// Groups whose code is for their architecture alone, as 90 for sm_90a; 0 ends the list.
constexpr std::int32_t kSpecificGroups[] = {GEMMHOIST_SPECIFIC_GROUPS 0};

constexpr bool is_built(const KernelDescriptor& kernel) {
  if (!kernel.arch_specific) return kernel.min_arch <= kNewestGroup;
  return std::find(std::begin(kSpecificGroups), std::end(kSpecificGroups), kernel.min_arch) !=
         std::end(kSpecificGroups);
}

constexpr auto kBuilt = [] {
  std::array<KernelDescriptor, std::count_if(kKnown.begin(), kKnown.end(), is_built)> built{};
  std::copy_if(kKnown.begin(), kKnown.end(), built.begin(), is_built);
  return built;
}();

LaunchShape shape_over(const KernelDescriptor& kernel, std::int32_t rows, std::int32_t cols) noexcept {
  LaunchShape shape{0, 0, 0, static_cast<std::uint32_t>(kernel.threads),
                    static_cast<std::uint32_t>(kernel.shared_bytes)};
  if (rows <= 0 || cols <= 0) return shape;
  // One dimension, whatever the shape of C: the others end at 65535 blocks, and the kernel wants the order of
  // tiles in its own hands.
  const std::uint64_t blocks =
      std::uint64_t{tiles_over(rows, kernel.tile_m)} * tiles_over(cols, kernel.tile_n);
  if (blocks > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) return shape;
  shape.grid_x = static_cast<std::uint32_t>(blocks);
  shape.grid_y = 1;
  shape.grid_z = 1;
  return shape;
}

}  // namespace

std::span<const KernelDescriptor> all() noexcept {
  return kBuilt;
}

std::span<const KernelDescriptor> known() noexcept {
  return kKnown;
}

const KernelDescriptor* find(const char* name) noexcept {
  for (const KernelDescriptor& kernel : all())
    if (std::strcmp(kernel.name, name) == 0) return &kernel;
  return nullptr;
}

LaunchShape launch_shape(const KernelDescriptor& kernel, const GemmKernelParams& params) noexcept {
  return shape_over(kernel, params.m, params.n);
}

LaunchShape launch_shape(const KernelDescriptor& kernel, const TransposeKernelParams& params) noexcept {
  return shape_over(kernel, params.rows, params.cols);
}

LaunchShape launch_shape(const KernelDescriptor& kernel, const PrepareKernelParams& params) noexcept {
  return shape_over(kernel, params.padded_rows, params.padded_k);
}

LaunchShape launch_shape(const KernelDescriptor& kernel, const PreparedGemmKernelParams& params) noexcept {
  return shape_over(kernel, params.gemm.m, params.gemm.n);
}

}  // namespace gemmhoist::kernels
