// CUDA device: device::Device on the driver API, in a context of our own.
#pragma once

#include <memory>
#include <span>

#include "device/cuda/driver_table.hpp"
#include "device/device.hpp"
#include "kernels/registry.hpp"

namespace gemmhoist::device::cuda {

// Drivers older than this are treated as absent: CUDA 12.0, the oldest toolkit that builds our code. What a
// newer toolkit's images need beyond it shows when they are loaded.
inline constexpr int kOldestDriver = 12000;

// Opens device `ordinal` through `driver` (which must outlive the device) on the calling thread: makes a
// context, leaves it current here, loads the kernels. Null with unavailable where there is nothing for us,
// out_of_memory where there will be when somebody lets go of memory. Takes 0.3 s and more.
std::unique_ptr<Device> open_device(const DriverTable& driver, std::int32_t ordinal,
                                    std::span<const KernelDescriptor> registry,
                                    std::span<const kernels::Image> images, Status& status) noexcept;

}  // namespace gemmhoist::device::cuda
