// cuBLAS, where the machine has it: the rate to stand beside.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::gpu_kernels {

class Cublas {
 public:
  Cublas();  // needs a current context
  bool usable() const { return sgemm_ != nullptr; }
  // The same product as a kernel's, of the same K-outer panels; accumulates nothing. On the default stream.
  bool multiply(const GemmKernelParams& params) const;

 private:
  using Sgemm = int (*)(void*, int, int, std::int64_t, std::int64_t, std::int64_t, const float*, const float*,
                        std::int64_t, const float*, std::int64_t, const float*, float*, std::int64_t);
  void* handle_ = nullptr;
  Sgemm sgemm_ = nullptr;
};

}  // namespace gemmhoist::gpu_kernels
