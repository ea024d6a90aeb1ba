// Result to Status: what a driver's error number means for us.
#pragma once

#include "core/status.hpp"
#include "device/cuda/driver_types.hpp"

namespace gemmhoist::device::cuda {

// The same number means different things before and after the device has worked: an unavailable device at
// opening is somebody else's or forbidden to us (silently absent), later it has fallen off the bus (lost).
enum class Phase { opening, running };

// ok for success; `what` is the driver function that answered, a string literal.
Status to_status(Result code, const char* what, Phase phase) noexcept;

// An image that this device or this driver cannot take: the next one may do.
bool image_unsuitable(Result code) noexcept;

}  // namespace gemmhoist::device::cuda
