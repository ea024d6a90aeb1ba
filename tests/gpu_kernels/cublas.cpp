#include "cublas.hpp"

#include <dlfcn.h>

#include <initializer_list>

namespace gemmhoist::gpu_kernels {
namespace {

constexpr int kOpN = 0, kOpT = 1, kFloat = 0, kAnyAlgorithm = -1;
// cublasComputeType_t: plain fp32, and with tf32 products.
constexpr int kComputeFp32 = 68, kComputeFastTf32 = 77;

void* open_library() {
  for (const char* name :
       {"libcublas.so.13", "libcublas.so.12", "libcublas.so", "/usr/local/cuda/lib64/libcublas.so"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

}  // namespace

Cublas::Cublas() {
  void* library = open_library();
  if (library == nullptr) return;
  // The 64-bit entry exists since CUDA 12, so every argument has the width declared.
  auto create = reinterpret_cast<int (*)(void**)>(dlsym(library, "cublasCreate_v2"));
  auto gemm = reinterpret_cast<GemmEx>(dlsym(library, "cublasGemmEx_64"));
  if (create != nullptr && gemm != nullptr && create(&handle_) == 0) gemm_ = gemm;
}

bool Cublas::multiply(const GemmKernelParams& p, CublasMode mode, Inner a, Inner b) const {
  const float beta = 0;
  return gemm_(handle_, a == Inner::rows ? kOpN : kOpT, b == Inner::rows ? kOpT : kOpN, p.m, p.n, p.k,
               &p.alpha, p.a, kFloat, a == Inner::rows ? p.lda : p.k, p.b, kFloat,
               b == Inner::rows ? p.ldb : p.k, &beta, p.c, kFloat, p.ldc,
               mode == CublasMode::fp32 ? kComputeFp32 : kComputeFastTf32, kAnyAlgorithm) == 0;
}

}  // namespace gemmhoist::gpu_kernels
