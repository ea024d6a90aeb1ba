// Registry of GPU kernels: descriptors and the fatbins that hold them. The library embeds one fatbin an
// architecture group; a build without nvcc has an empty registry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

// All kernels of the build, most capable first within a precision.
std::span<const KernelDescriptor> all() noexcept;

// One embedded fatbin: machine code of one architecture group (and PTX in the newest).
struct Image {
  const char* group;  // "sm_90a"
  const void* data;
  std::size_t bytes;
};
std::span<const Image> images() noexcept;

struct LaunchShape {
  std::uint32_t grid_x, grid_y, grid_z, threads, shared_bytes;
};
LaunchShape launch_shape(const KernelDescriptor& kernel, const GemmKernelParams& params) noexcept;
LaunchShape launch_shape(const KernelDescriptor& kernel, const TransposeKernelParams& params) noexcept;

}  // namespace gemmhoist::kernels
