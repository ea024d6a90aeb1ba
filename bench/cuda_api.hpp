// The few functions of the CUDA runtime and of cuBLAS that the peers need, looked up at run time. Their C
// prototypes are declared here, so that no CUDA header is needed to build; both ABIs have kept them from
// CUDA 11 to 13.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "shared_object.hpp"

namespace gemmhoist::bench {

using CudaStream = void*;
using CudaEvent = void*;
using CublasHandle = void*;
using CublasXtHandle = void*;

enum CudaMemcpyKind : int { kHostToDevice = 1, kDeviceToHost = 2 };
enum CublasOperation : int { kOpN = 0, kOpT = 1 };

struct CudaRuntime {
  // Loads the runtime and makes device 0 current. `why_not` says what is missing.
  explicit CudaRuntime(const std::string& path);
  CudaRuntime(const CudaRuntime&) = delete;

  bool usable() const { return why_not.empty(); }
  // Throws std::runtime_error with CUDA's own text for any status but success.
  void check(int status, const char* what) const;

  SharedObject object;
  std::string why_not;

  int (*get_device_count)(int*) = nullptr;
  int (*set_device)(int) = nullptr;
  int (*malloc_device)(void**, std::size_t) = nullptr;
  int (*free_device)(void*) = nullptr;
  int (*malloc_host)(void**, std::size_t) = nullptr;
  int (*free_host)(void*) = nullptr;
  int (*memcpy_async)(void*, const void*, std::size_t, int, CudaStream) = nullptr;
  int (*memcpy_2d_async)(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t, int,
                         CudaStream) = nullptr;
  int (*stream_create)(CudaStream*, unsigned) = nullptr;
  int (*stream_synchronize)(CudaStream) = nullptr;
  int (*device_synchronize)() = nullptr;
  int (*event_create)(CudaEvent*) = nullptr;
  int (*event_record)(CudaEvent, CudaStream) = nullptr;
  int (*event_elapsed_ms)(float*, CudaEvent, CudaEvent) = nullptr;
  int (*get_last_error)() = nullptr;
  int (*driver_version)(int*) = nullptr;
  int (*runtime_version)(int*) = nullptr;
  const char* (*error_string)(int) = nullptr;
};

struct Cublas {
  explicit Cublas(const std::string& path);
  Cublas(const Cublas&) = delete;

  bool usable() const { return why_not.empty(); }
  static void check(int status, const char* what);

  SharedObject object;
  std::string why_not;

  int (*create)(CublasHandle*) = nullptr;
  int (*set_stream)(CublasHandle, CudaStream) = nullptr;
  int (*sgemm)(CublasHandle, int, int, int, int, int, const float*, const float*, int, const float*, int,
               const float*, float*, int) = nullptr;
  int (*xt_create)(CublasXtHandle*) = nullptr;
  int (*xt_device_select)(CublasXtHandle, int, int*) = nullptr;
  int (*xt_set_block_dim)(CublasXtHandle, int) = nullptr;
  int (*xt_set_pinning_mem_mode)(CublasXtHandle, int) = nullptr;
  int (*xt_sgemm)(CublasXtHandle, int, int, std::size_t, std::size_t, std::size_t, const float*, const float*,
                  std::size_t, const float*, std::size_t, const float*, float*, std::size_t) = nullptr;
};

}  // namespace gemmhoist::bench
