// Plausible: whether starting the GPU could succeed at all, told on a caller's thread from what lies about,
// without loading, opening or starting anything.
#pragma once

namespace gemmhoist::device::cuda {

// True where CUDA_VISIBLE_DEVICES (null: not set) hides every device: the driver reads entries up to the
// first that names none, so an empty value or a negative first entry hides all. What only the driver can
// judge (an ordinal too large, a UUID) is not judged here.
bool hides_all_devices(const char* visible_devices) noexcept;

// True where a driver for NVIDIA's GPUs seems to be there.
bool driver_in_sight() noexcept;

}  // namespace gemmhoist::device::cuda
