// Kernel modules: the embedded fatbins as loaded into one context, and the functions found in them.
#pragma once

#include <span>
#include <vector>

#include "core/kernel_descriptor.hpp"
#include "core/status.hpp"
#include "device/cuda/driver_table.hpp"
#include "kernels/registry.hpp"

namespace gemmhoist::device::cuda {

// What of the device decides which kernels it can run.
struct KernelLimits {
  std::int32_t arch = 0;              // compute capability times ten
  std::int32_t max_shared_bytes = 0;  // dynamic shared memory of a block, at most
};

struct LoadedKernels {
  std::vector<KernelDescriptor> descriptors;  // in the registry's order
  std::vector<Function> functions;            // parallel to descriptors
  std::vector<Module> modules;
};

// Order in which `images` are tried on a device of `arch`: indices, best first. Machine code runs on devices
// of its own generation from its minor number on (code of an 'a' group on exactly its own); then comes PTX,
// which the driver compiles, in seconds, for any device as new as it or newer. Images of neither kind are
// left out.
std::vector<std::size_t> image_order(std::span<const kernels::Image> images, std::int32_t arch);

// Loads images, best first, until every kernel that `limits` admits is found or no image is left; images that
// the driver or the device cannot take are passed over. unavailable when no kernel was found at all. May
// throw bad_alloc. What is loaded belongs to the current context and goes with it.
Status load_kernels(const DriverTable& driver, const KernelLimits& limits,
                    std::span<const KernelDescriptor> registry, std::span<const kernels::Image> images,
                    LoadedKernels& loaded);

}  // namespace gemmhoist::device::cuda
