// Registry of GPU kernels: descriptors and the fatbins that hold them. The library embeds one fatbin an
// architecture group; a build without nvcc has an empty registry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::kernels {

// All kernels of the build, most capable first within a precision. A device runs those that the image it
// loads contains, and whose shared memory it has.
std::span<const KernelDescriptor> all() noexcept;

// All kernels that there are, in the same order, whatever this build could compile: for tests and for a
// simulated device.
std::span<const KernelDescriptor> known() noexcept;

// Null where the build has none of that name.
const KernelDescriptor* find(const char* name) noexcept;

// One embedded fatbin: machine code of one architecture group (and PTX in the newest).
struct Image {
  const char* group;  // "sm_90a"
  const void* data;
  std::size_t bytes;
  std::int32_t arch;  // 90; an image of sm_90a runs on 90 alone, others on later ones of the same generation
  std::int32_t
      ptx_arch;  // 0: no PTX; else it runs, after compilation by the driver, on this and all later ones
};
std::span<const Image> images() noexcept;

// An image of instructions that its architecture alone has: its group ends with 'a'.
constexpr bool is_arch_specific(const Image& image) noexcept {
  const char* end = image.group;
  while (*end != '\0') ++end;
  return end != image.group && end[-1] == 'a';
}

// A kernel is compiled for its own and every later architecture of the build, or where it is specific to one,
// for that alone.
constexpr bool contains(const Image& image, const KernelDescriptor& kernel) noexcept {
  if (kernel.arch_specific) return image.arch == kernel.min_arch && is_arch_specific(image);
  return image.arch >= kernel.min_arch;
}

// A grid of zero blocks: the product needs more blocks than a grid can have (2^31 - 1), or an extent is not
// positive; there is nothing to launch.
struct LaunchShape {
  std::uint32_t grid_x, grid_y, grid_z, threads, shared_bytes;
};
LaunchShape launch_shape(const KernelDescriptor& kernel, const GemmKernelParams& params) noexcept;
LaunchShape launch_shape(const KernelDescriptor& kernel, const TransposeKernelParams& params) noexcept;
LaunchShape launch_shape(const KernelDescriptor& kernel, const PrepareKernelParams& params) noexcept;
LaunchShape launch_shape(const KernelDescriptor& kernel, const PreparedGemmKernelParams& params) noexcept;

}  // namespace gemmhoist::kernels
