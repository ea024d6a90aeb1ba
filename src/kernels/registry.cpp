#include "kernels/registry.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "kernels/sgemm_fp32_128x128x16_s3_sm80.hpp"
#include "kernels/sgemm_fp32_128x128x8_s2_sm75.hpp"
#include "kernels/sgemm_fp32_128x256x32_s3_sm80.hpp"
#include "kernels/sgemm_fp32_16x16x1_s1_sm75.hpp"
#include "kernels/sgemm_fp32_64x64x16_s3_sm80.hpp"
#include "kernels/tile_order.hpp"
#include "kernels/transpose_64x64_sm75.hpp"

namespace gemmhoist::kernels {
namespace {

// Most capable first within a precision; what is no choice for a product comes last.
constexpr std::array kKnown{
    descriptor_sgemm_fp32_128x256x32_s3_sm80, descriptor_sgemm_fp32_128x128x16_s3_sm80,
    descriptor_sgemm_fp32_64x64x16_s3_sm80,   descriptor_sgemm_fp32_128x128x8_s2_sm75,
    descriptor_transpose_64x64_sm75,          descriptor_sgemm_fp32_16x16x1_s1_sm75,
};

// The newest architecture group of the build; 0 without nvcc.
constexpr std::int32_t kNewestGroup = GEMMHOIST_NEWEST_GROUP;

constexpr bool is_built(const KernelDescriptor& kernel) {
  return kernel.min_arch <= kNewestGroup;
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

}  // namespace gemmhoist::kernels
