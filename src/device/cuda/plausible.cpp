#include "device/cuda/plausible.hpp"

#include <link.h>
#include <unistd.h>

#include <cstring>

namespace gemmhoist::device::cuda {
namespace {

// Any of these is a reason to try. A wrong yes costs one failed dlopen on our own thread; a wrong no costs
// the GPU.
constexpr const char* kSigns[] = {
    "/dev/nvidiactl",               // the usual driver, its nodes made
    "/proc/driver/nvidia/version",  // its kernel module is loaded, the nodes not made yet: cuInit makes them
    "/usr/bin/nvidia-modprobe",     // not even loaded yet: cuInit runs this helper, which loads it
    "/dev/dxg",                     // Windows' subsystem for Linux
    "/dev/nvgpu",                   // Tegra: the integrated GPU has nodes of its own
    "/dev/nvhost-gpu",              // Tegra, older kernels
};

// dl_iterate_phdr and not dlopen(RTLD_NOLOAD): dlopen takes the loader's big lock, which another thread may
// hold while its constructor waits for a product of ours.
int is_driver_library(dl_phdr_info* info, std::size_t, void* found) noexcept {
  const char* slash = std::strrchr(info->dlpi_name, '/');
  const char* base = slash != nullptr ? slash + 1 : info->dlpi_name;
  if (std::strcmp(base, "libcuda.so.1") != 0 && std::strncmp(base, "libcuda.so.", 11) != 0) return 0;
  *static_cast<bool*>(found) = true;
  return 1;
}

}  // namespace

bool hides_all_devices(const char* visible_devices) noexcept {
  if (visible_devices == nullptr) return false;
  const char* p = visible_devices + std::strspn(visible_devices, " \t");
  return *p == '\0' || *p == ',' || *p == '-' || std::strcmp(p, "NoDevFiles") == 0;
}

bool driver_in_sight() noexcept {
  for (const char* path : kSigns) {
    if (access(path, F_OK) == 0) return true;
  }
  bool found = false;  // the host uses the driver already, wherever it keeps its nodes
  dl_iterate_phdr(is_driver_library, &found);
  return found;
}

}  // namespace gemmhoist::device::cuda
