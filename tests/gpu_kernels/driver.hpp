// Driver: the few calls of the CUDA driver API that checking a kernel needs, found at run time, so that the
// binary starts on machines without a GPU. Errors throw: this is a tool, not the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/kernel_descriptor.hpp"
#include "kernels/registry.hpp"

namespace gemmhoist::gpu_kernels {

struct DriverError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Address = std::uint64_t;

// One GPU, its primary context and the registry's image for it.
class Gpu {
 public:
  // Null, with the reason, where there is no usable GPU.
  static Gpu* open(int ordinal, std::string& why_not);

  const std::string& name() const { return name_; }
  int arch() const { return arch_; }
  const kernels::Image& image() const { return *image_; }
  // False: the image has no such kernel, or the GPU too little shared memory for it; `why_not` says which.
  bool can_run(const KernelDescriptor& kernel, std::string& why_not);

  Address allocate(std::size_t bytes);
  void release(Address address);
  void upload(Address to, const void* from, std::size_t bytes);
  void download(void* to, Address from, std::size_t bytes);

  // Asynchronous, on the default stream. A kernel that cuts tiles gets its scratch memory here: do not time
  // it so.
  void launch(const KernelDescriptor& kernel, GemmKernelParams params);
  void launch(const KernelDescriptor& kernel, TransposeKernelParams params);
  void launch(const KernelDescriptor& kernel, PrepareKernelParams params);
  void launch(const KernelDescriptor& kernel, PreparedGemmKernelParams params);
  void synchronize();

  // Events of the default stream.
  void* make_event();
  void record(void* event);
  double seconds_between(void* begin, void* end);  // waits for both

 private:
  Gpu() = default;
  void* function(const KernelDescriptor& kernel);
  void launch_stream_k(const KernelDescriptor& kernel, const GemmKernelParams& gemm);
  void launch(const KernelDescriptor& kernel, const kernels::LaunchShape& shape, void* params);

  struct Loaded {
    const KernelDescriptor* kernel;
    void* function;
  };

  std::string name_;
  int arch_ = 0;
  int shared_bytes_a_block_ = 0;
  int sms_ = 0;
  Address scratch_ = 0;  // partial sums and tickets of launches that cut tiles
  std::size_t scratch_floats_ = 0;
  const kernels::Image* image_ = nullptr;
  void* module_ = nullptr;
  std::vector<Loaded> loaded_;
};

// Device memory that goes with its owner.
class Buffer {
 public:
  Buffer(Gpu& gpu, std::size_t floats) : gpu_(gpu), address_(gpu.allocate(floats * sizeof(float))) {}
  Buffer(Gpu& gpu, std::span<const float> from) : Buffer(gpu, from.size()) { upload(from); }
  ~Buffer() { gpu_.release(address_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  float* device() const { return reinterpret_cast<float*>(address_); }
  void upload(std::span<const float> from, std::size_t at = 0) {
    gpu_.upload(address_ + at * sizeof(float), from.data(), from.size_bytes());
  }
  void download(std::span<float> to) const { gpu_.download(to.data(), address_, to.size_bytes()); }

 private:
  Gpu& gpu_;
  Address address_;
};

}  // namespace gemmhoist::gpu_kernels
