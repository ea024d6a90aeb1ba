// cuBLAS, where the machine has it: the rate to stand beside.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::gpu_kernels {

enum class CublasMode { fp32, tf32 };

class Cublas {
 public:
  Cublas();  // needs a current context
  bool usable() const { return gemm_ != nullptr; }
  // The same product as a kernel's, of the same K-outer panels; accumulates nothing. On the default stream.
  bool multiply(const GemmKernelParams& params, CublasMode mode = CublasMode::fp32) const;

 private:
  using GemmEx = int (*)(void*, int, int, std::int64_t, std::int64_t, std::int64_t, const void*, const void*,
                         int, std::int64_t, const void*, int, std::int64_t, const void*, void*, int,
                         std::int64_t, int, int);
  void* handle_ = nullptr;
  GemmEx gemm_ = nullptr;
};

}  // namespace gemmhoist::gpu_kernels
