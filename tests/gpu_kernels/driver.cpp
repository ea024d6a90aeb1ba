#include "driver.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>

#include "core/checked.hpp"
#include "kernels/stream_k.hpp"

namespace gemmhoist::gpu_kernels {
namespace {

// The driver's types, as its ABI has them; the tests do without CUDA's headers.
using Result = int;
constexpr int kAttributeSms = 16, kAttributeSharedBytesOptin = 97, kAttributeMajor = 75, kAttributeMinor = 76;
constexpr int kFunctionMaxDynamicSharedBytes = 8;

struct Calls {
  Result (*init)(unsigned);
  Result (*device_count)(int*);
  Result (*device)(int*, int);
  Result (*device_name)(char*, int, int);
  Result (*device_attribute)(int*, int, int);
  Result (*primary_context)(void**, int);
  Result (*set_context)(void*);
  Result (*load_module)(void**, const void*);
  Result (*get_function)(void**, void*, const char*);
  Result (*set_function_attribute)(void*, int, int);
  Result (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                   void**);
  Result (*allocate)(Address*, std::size_t);
  Result (*release)(Address);
  Result (*upload)(Address, const void*, std::size_t);
  Result (*download)(void*, Address, std::size_t);
  Result (*synchronize)();
  Result (*make_event)(void**, unsigned);
  Result (*record)(void*, void*);
  Result (*wait_event)(void*);
  Result (*elapsed)(float*, void*, void*);
  Result (*error_name)(Result, const char**);
};
Calls calls{};

template <typename Function>
bool resolve(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

bool resolve_all(void* library) {
  return resolve(library, "cuInit", calls.init) && resolve(library, "cuDeviceGetCount", calls.device_count) &&
         resolve(library, "cuDeviceGet", calls.device) &&
         resolve(library, "cuDeviceGetName", calls.device_name) &&
         resolve(library, "cuDeviceGetAttribute", calls.device_attribute) &&
         resolve(library, "cuDevicePrimaryCtxRetain", calls.primary_context) &&
         resolve(library, "cuCtxSetCurrent", calls.set_context) &&
         resolve(library, "cuModuleLoadData", calls.load_module) &&
         resolve(library, "cuModuleGetFunction", calls.get_function) &&
         resolve(library, "cuFuncSetAttribute", calls.set_function_attribute) &&
         resolve(library, "cuLaunchKernel", calls.launch) &&
         resolve(library, "cuMemAlloc_v2", calls.allocate) &&
         resolve(library, "cuMemFree_v2", calls.release) &&
         resolve(library, "cuMemcpyHtoD_v2", calls.upload) &&
         resolve(library, "cuMemcpyDtoH_v2", calls.download) &&
         resolve(library, "cuCtxSynchronize", calls.synchronize) &&
         resolve(library, "cuEventCreate", calls.make_event) &&
         resolve(library, "cuEventRecord", calls.record) &&
         resolve(library, "cuEventSynchronize", calls.wait_event) &&
         resolve(library, "cuEventElapsedTime", calls.elapsed) &&
         resolve(library, "cuGetErrorName", calls.error_name);
}

void require(Result result, const char* what) {
  if (result == 0) return;
  const char* name = nullptr;
  if (calls.error_name(result, &name) != 0 || name == nullptr) name = "unknown error";
  throw DriverError(std::string(what) + ": " + name);
}

}  // namespace

Gpu* Gpu::open(int ordinal, std::string& why_not) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  int count = 0;
  if (library == nullptr || !resolve_all(library))
    why_not = "no CUDA driver";
  else if (calls.init(0) != 0 || calls.device_count(&count) != 0 || count <= ordinal)
    why_not = "no such GPU";
  else if (kernels::images().empty())
    why_not = "built without nvcc";
  if (!why_not.empty()) return nullptr;

  int device = 0, major = 0, minor = 0;
  require(calls.device(&device, ordinal), "cuDeviceGet");
  require(calls.device_attribute(&major, kAttributeMajor, device), "cuDeviceGetAttribute");
  require(calls.device_attribute(&minor, kAttributeMinor, device), "cuDeviceGetAttribute");
  Gpu* gpu = new Gpu;  // lives as long as the process
  gpu->arch_ = major * 10 + minor;
  require(calls.device_attribute(&gpu->shared_bytes_a_block_, kAttributeSharedBytesOptin, device),
          "cuDeviceGetAttribute");
  require(calls.device_attribute(&gpu->sms_, kAttributeSms, device), "cuDeviceGetAttribute");
  char name[128] = {};
  require(calls.device_name(name, sizeof name - 1, device), "cuDeviceGetName");
  gpu->name_ = name;
  void* context = nullptr;
  require(calls.primary_context(&context, device), "cuDevicePrimaryCtxRetain");
  require(calls.set_context(context), "cuCtxSetCurrent");

  // The newest image that the GPU takes.
  std::vector<const kernels::Image*> images;
  for (const kernels::Image& image : kernels::images()) images.push_back(&image);
  std::sort(images.begin(), images.end(), [](const auto* x, const auto* y) { return x->arch > y->arch; });
  for (const kernels::Image* image : images) {
    if (image->arch > gpu->arch_ || (kernels::is_arch_specific(*image) && image->arch != gpu->arch_) ||
        calls.load_module(&gpu->module_, image->data) != 0)
      continue;
    gpu->image_ = image;
    return gpu;
  }
  why_not = gpu->name_ + ": this build has no code for it";
  return nullptr;
}

bool Gpu::can_run(const KernelDescriptor& kernel, std::string& why_not) {
  if (!kernels::contains(*image_, kernel))
    why_not = std::string("not in the image of ") + image_->group;
  else if (kernel.shared_bytes > shared_bytes_a_block_)
    why_not = "more shared memory than this GPU has";
  return why_not.empty();
}

void* Gpu::function(const KernelDescriptor& kernel) {
  for (const Loaded& loaded : loaded_)
    if (loaded.kernel == &kernel) return loaded.function;
  void* function = nullptr;
  require(calls.get_function(&function, module_, kernel.name), kernel.name);
  require(calls.set_function_attribute(function, kFunctionMaxDynamicSharedBytes, kernel.shared_bytes),
          "cuFuncSetAttribute");
  loaded_.push_back({&kernel, function});
  return function;
}

Address Gpu::allocate(std::size_t bytes) {
  Address address = 0;
  require(calls.allocate(&address, bytes), "cuMemAlloc");
  return address;
}

void Gpu::release(Address address) {
  if (calls.release(address) != 0) std::fputs("cuMemFree failed\n", stderr);
}

void Gpu::upload(Address to, const void* from, std::size_t bytes) {
  if (bytes > 0) require(calls.upload(to, from, bytes), "cuMemcpyHtoD");
}

void Gpu::download(void* to, Address from, std::size_t bytes) {
  require(calls.download(to, from, bytes), "cuMemcpyDtoH");
}

void Gpu::launch(const KernelDescriptor& kernel, const kernels::LaunchShape& shape, void* params) {
  void* arguments[] = {params};
  require(calls.launch(function(kernel), shape.grid_x, shape.grid_y, shape.grid_z, shape.threads, 1, 1,
                       shape.shared_bytes, nullptr, arguments, nullptr),
          kernel.name);
}

void Gpu::launch(const KernelDescriptor& kernel, GemmKernelParams params) {
  if (kernel.role == KernelRole::gemm_stream_k) return launch_stream_k(kernel, params);
  launch(kernel, kernels::launch_shape(kernel, params), &params);
}

// Panels are matrices like others to these kernels; where one wants k contiguous, the panel is turned for it,
// to where nothing is aligned.
void Gpu::launch_stream_k(const KernelDescriptor& kernel, const GemmKernelParams& gemm) {
  kernels::StreamKParams params{};
  params.gemm = gemm;
  kernels::deal_out(kernel, sms_, params);
  const std::int64_t ld = gemm.k | 1;
  const auto partials = static_cast<std::size_t>(round_up(kernels::partial_floats(kernel, params), 4));
  const auto turned_a = static_cast<std::size_t>(kernel.a_k_inner ? 1 + ld * gemm.m : 0);
  const auto turned_b = static_cast<std::size_t>(kernel.b_k_inner ? 1 + ld * gemm.n : 0);
  const std::vector<std::uint32_t> zeros(static_cast<std::size_t>(kernels::ticket_count(kernel, params)));
  const std::size_t floats = partials + turned_a + turned_b + zeros.size();
  if (floats > scratch_floats_) {
    synchronize();
    if (scratch_ != 0) release(scratch_);
    scratch_floats_ = 2 * floats;
    scratch_ = allocate(scratch_floats_ * sizeof(float));
  }
  auto* const scratch = reinterpret_cast<float*>(scratch_);
  const auto turn = [&](const float* panel, std::int64_t panel_ld, std::int32_t extent, float* to) {
    for (const KernelDescriptor& other : kernels::all())
      if (other.role == KernelRole::transpose)
        launch(other, TransposeKernelParams{panel, to, panel_ld, ld, gemm.k, extent});
  };
  params.partials = scratch;
  if (kernel.a_k_inner) {
    params.gemm.a = scratch + partials + 1;
    turn(gemm.a, gemm.lda, gemm.m, scratch + partials + 1);
    params.gemm.lda = ld;
  }
  if (kernel.b_k_inner) {
    params.gemm.b = scratch + partials + turned_a + 1;
    turn(gemm.b, gemm.ldb, gemm.n, scratch + partials + turned_a + 1);
    params.gemm.ldb = ld;
  }
  float* const tickets = scratch + partials + turned_a + turned_b;
  upload(reinterpret_cast<Address>(tickets), zeros.data(), zeros.size() * sizeof(std::uint32_t));
  params.tickets = reinterpret_cast<std::uint32_t*>(tickets);
  launch(kernel,
         kernels::LaunchShape{static_cast<std::uint32_t>(kernels::blocks_of(params)), 1, 1,
                              static_cast<std::uint32_t>(kernel.threads),
                              static_cast<std::uint32_t>(kernel.shared_bytes)},
         &params);
}

void Gpu::launch(const KernelDescriptor& kernel, TransposeKernelParams params) {
  launch(kernel, kernels::launch_shape(kernel, params), &params);
}

void Gpu::launch(const KernelDescriptor& kernel, PrepareKernelParams params) {
  launch(kernel, kernels::launch_shape(kernel, params), &params);
}

void Gpu::launch(const KernelDescriptor& kernel, PreparedGemmKernelParams params) {
  launch(kernel, kernels::launch_shape(kernel, params), &params);
}

void Gpu::synchronize() {
  require(calls.synchronize(), "cuCtxSynchronize");
}

void* Gpu::make_event() {
  void* event = nullptr;
  require(calls.make_event(&event, 0), "cuEventCreate");
  return event;
}

void Gpu::record(void* event) {
  require(calls.record(event, nullptr), "cuEventRecord");
}

double Gpu::seconds_between(void* begin, void* end) {
  require(calls.wait_event(end), "cuEventSynchronize");
  float milliseconds = 0;
  require(calls.elapsed(&milliseconds, begin, end), "cuEventElapsedTime");
  return milliseconds * 1e-3;
}

}  // namespace gemmhoist::gpu_kernels
