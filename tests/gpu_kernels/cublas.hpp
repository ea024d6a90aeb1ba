// cuBLAS, where the machine has it: the rate to stand beside.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::gpu_kernels {

enum class CublasMode { fp32, tf32 };

// How operands lie in memory: `rows` is the K-outer panel; `k` has the steps of k of a row next to each
// other, params.k apart.
enum class Inner { rows, k };

class Cublas {
 public:
  Cublas();  // needs a current context
  bool usable() const { return gemm_ != nullptr; }
  // The same product as a kernel's, of the same K-outer panels; accumulates nothing. On the default stream.
  bool multiply(const GemmKernelParams& params, CublasMode mode = CublasMode::fp32, Inner a = Inner::rows,
                Inner b = Inner::rows) const;

 private:
  using GemmEx = int (*)(void*, int, int, std::int64_t, std::int64_t, std::int64_t, const void*, const void*,
                         int, std::int64_t, const void*, int, std::int64_t, const void*, void*, int,
                         std::int64_t, int, int);
  void* handle_ = nullptr;
  GemmEx gemm_ = nullptr;
};

}  // namespace gemmhoist::gpu_kernels
