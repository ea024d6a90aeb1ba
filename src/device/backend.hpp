// Backend: which implementation of Device this build has. One of cuda/, stub.cpp and the tests' simulated
// device is linked; callers see no difference.
#pragma once

#include <cstdint>

#include "device/worker.hpp"

namespace gemmhoist::device {

// "cuda", "none" or "simulated".
const char* backend_name() noexcept;

// False where starting is hopeless, told without loading any CUDA library, opening a device or making a
// thread (no driver library or device node to be seen, CUDA_VISIBLE_DEVICES empty or -1). Cheap; the answer
// is kept.
bool backend_plausible() noexcept;

// Ordinals that `GEMMHOIST_DEVICES` selects; at most `capacity` are written, the number is returned. "all"
// needs the driver, hence is asked on the worker: before that, it is answered as device 0.
int selected_devices(std::int32_t* ordinals, int capacity) noexcept;

std::unique_ptr<Device> make_device(std::int32_t ordinal, Status& status) noexcept;

}  // namespace gemmhoist::device
