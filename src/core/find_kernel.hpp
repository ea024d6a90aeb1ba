// The kernels that a list has for a role: the first of each, since the registry lists the most capable first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernel_descriptor.hpp"

namespace gemmhoist {

// Its index; -1: there is none.
constexpr std::int32_t find_kernel(std::span<const KernelDescriptor> kernels, KernelRole role,
                                   Precision precision) noexcept {
  for (std::size_t i = 0; i < kernels.size(); ++i)
    if (kernels[i].role == role && kernels[i].precision == precision) return static_cast<std::int32_t>(i);
  return -1;
}

// The kernels that make products of images in one precision.
struct ImageKernels {
  std::int32_t product = -1, prepare = -1;
  std::int32_t leftover = -1;  // bf16x6 alone has tiles to leave out
};

// False where one of them is missing.
constexpr bool find_image_kernels(std::span<const KernelDescriptor> kernels, Precision precision,
                                  ImageKernels& found) noexcept {
  found.product = find_kernel(kernels, KernelRole::gemm_prepared, precision);
  found.prepare = find_kernel(kernels, KernelRole::prepare, precision);
  found.leftover = find_kernel(kernels, KernelRole::gemm_leftover, precision);
  const bool has_leftover = found.leftover >= 0 || precision != Precision::bf16x6;
  return found.product >= 0 && found.prepare >= 0 && has_leftover;
}

}  // namespace gemmhoist
