#include "device/cuda/kernel_modules.hpp"

#include <algorithm>
#include <cstring>

#include "device/cuda/result_status.hpp"

namespace gemmhoist::device::cuda {
namespace {

// A block gets this much dynamic shared memory without being asked for (CUDA programming guide).
constexpr std::int32_t kDefaultSharedBytes = 48 * 1024;

// Smaller is tried earlier; negative: never.
int preference(const kernels::Image& image, std::int32_t arch) noexcept {
  constexpr int kAfterMachineCode = 100000;
  const std::size_t length = std::strlen(image.group);
  const bool exact = length > 0 && image.group[length - 1] == 'a';
  const bool runs = exact ? image.arch == arch : image.arch <= arch && image.arch / 10 == arch / 10;
  if (runs) return arch - image.arch;
  if (image.ptx_arch != 0 && image.ptx_arch <= arch) return kAfterMachineCode + (arch - image.ptx_arch);
  return -1;
}

bool admits(const KernelLimits& limits, const KernelDescriptor& kernel) noexcept {
  return kernel.min_arch <= limits.arch && kernel.shared_bytes <= limits.max_shared_bytes;
}

// Takes kernel `name` out of `module` and makes it ready to launch. Modules load lazily by default since
// CUDA 12.2: the code of a function reaches the device at its first launch, and that load may wait for
// everything that runs. Asking for the function here moves it out of a program's call, whatever
// CUDA_MODULE_LOADING says. `function` stays null where the module lacks the kernel or the device cannot hold
// a block of it.
Status take_function(const DriverTable& driver, Module module, const KernelDescriptor& kernel,
                     Function& function) noexcept {
  function = nullptr;
  Function found = nullptr;
  const Result answer = driver.module_get_function(&found, module, kernel.name);
  if (answer == result::not_found || image_unsuitable(answer)) return {};
  GEMMHOIST_RETURN_IF_FAILED(to_status(answer, "cuModuleGetFunction", Phase::opening));
  if (driver.func_load != nullptr) {
    const Result load = driver.func_load(found);
    if (image_unsuitable(load)) return {};
    GEMMHOIST_RETURN_IF_FAILED(to_status(load, "cuFuncLoad", Phase::opening));
  }
  int max_threads = 0;  // also loads the function where cuFuncLoad is missing
  GEMMHOIST_RETURN_IF_FAILED(
      to_status(driver.func_get_attribute(&max_threads, function_attribute::max_threads_per_block, found),
                "cuFuncGetAttribute", Phase::opening));
  if (max_threads < kernel.threads) return {};
  if (kernel.shared_bytes > kDefaultSharedBytes) {
    GEMMHOIST_RETURN_IF_FAILED(
        to_status(driver.func_set_attribute(found, function_attribute::max_dynamic_shared_size_bytes,
                                            kernel.shared_bytes),
                  "cuFuncSetAttribute", Phase::opening));
  }
  function = found;
  return {};
}

}  // namespace

std::vector<std::size_t> image_order(std::span<const kernels::Image> images, std::int32_t arch) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (preference(images[i], arch) >= 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
    return preference(images[x], arch) < preference(images[y], arch);
  });
  return order;
}

Status load_kernels(const DriverTable& driver, const KernelLimits& limits,
                    std::span<const KernelDescriptor> registry, std::span<const kernels::Image> images,
                    LoadedKernels& loaded) {
  std::vector<Function> found(registry.size(), nullptr);
  const auto missing = [&](std::size_t i) { return found[i] == nullptr && admits(limits, registry[i]); };
  const auto any_missing = [&] {
    for (std::size_t i = 0; i < registry.size(); ++i) {
      if (missing(i)) return true;
    }
    return false;
  };

  int unsuitable = 0;  // the last image's own reason, for the report
  for (const std::size_t index : image_order(images, limits.arch)) {
    if (!any_missing()) break;
    Module module = nullptr;
    const Result answer = driver.module_load_data(&module, images[index].data);
    if (image_unsuitable(answer)) {
      unsuitable = answer;
      continue;
    }
    GEMMHOIST_RETURN_IF_FAILED(to_status(answer, "cuModuleLoadData", Phase::opening));
    bool used = false;
    for (std::size_t i = 0; i < registry.size(); ++i) {
      if (!missing(i)) continue;
      GEMMHOIST_RETURN_IF_FAILED(take_function(driver, module, registry[i], found[i]));
      used |= found[i] != nullptr;
    }
    if (used) {
      loaded.modules.push_back(module);
    } else {
      GEMMHOIST_RETURN_IF_FAILED(to_status(driver.module_unload(module), "cuModuleUnload", Phase::opening));
    }
  }

  for (std::size_t i = 0; i < registry.size(); ++i) {
    if (found[i] == nullptr) continue;
    loaded.descriptors.push_back(registry[i]);
    loaded.functions.push_back(found[i]);
  }
  if (loaded.descriptors.empty()) return {StatusCode::unavailable, "no kernel for this device", unsuitable};
  return {};
}

}  // namespace gemmhoist::device::cuda
