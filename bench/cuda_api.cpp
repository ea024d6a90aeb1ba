#include "cuda_api.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace gemmhoist::bench {

CudaRuntime::CudaRuntime(const std::string& path)
    : object({path, "libcudart.so.13", "libcudart.so.12", "/usr/local/cuda/lib64/libcudart.so"}) {
  if (!object.loaded()) {
    why_not = "no CUDA runtime: " + object.error();
    return;
  }
  const bool complete =
      object.bind(get_device_count, "cudaGetDeviceCount") && object.bind(set_device, "cudaSetDevice") &&
      object.bind(malloc_device, "cudaMalloc") && object.bind(free_device, "cudaFree") &&
      object.bind(malloc_host, "cudaMallocHost") && object.bind(free_host, "cudaFreeHost") &&
      object.bind(memcpy_async, "cudaMemcpyAsync") && object.bind(memcpy_2d_async, "cudaMemcpy2DAsync") &&
      object.bind(stream_create, "cudaStreamCreateWithFlags") &&
      object.bind(stream_synchronize, "cudaStreamSynchronize") &&
      object.bind(device_synchronize, "cudaDeviceSynchronize") &&
      object.bind(event_create, "cudaEventCreate") && object.bind(event_record, "cudaEventRecord") &&
      object.bind(event_elapsed_ms, "cudaEventElapsedTime") &&
      object.bind(get_last_error, "cudaGetLastError") &&
      object.bind(driver_version, "cudaDriverGetVersion") &&
      object.bind(runtime_version, "cudaRuntimeGetVersion") &&
      object.bind(error_string, "cudaGetErrorString");
  if (!complete) {
    why_not = object.path() + " lacks a function";
    return;
  }
  int devices = 0;
  int status = get_device_count(&devices);
  if (status == 0 && devices > 0) status = set_device(0);
  if (status != 0) why_not = std::string("no CUDA device: ") + error_string(status);
  if (status == 0 && devices == 0) why_not = "no CUDA device";
}

void CudaRuntime::check(int status, const char* what) const {
  if (status == 0) return;
  get_last_error();  // takes the error off this thread, so that the next peer starts clean
  throw std::runtime_error(fmt::format("{}: {}", what, error_string(status)));
}

Cublas::Cublas(const std::string& path)
    : object({path, "libcublas.so.13", "libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so"}) {
  if (!object.loaded()) {
    why_not = "no cuBLAS: " + object.error();
    return;
  }
  const bool complete = object.bind(create, "cublasCreate_v2") &&
                        object.bind(set_stream, "cublasSetStream_v2") &&
                        object.bind(sgemm, "cublasSgemm_v2") && object.bind(xt_create, "cublasXtCreate") &&
                        object.bind(xt_device_select, "cublasXtDeviceSelect") &&
                        object.bind(xt_set_block_dim, "cublasXtSetBlockDim") &&
                        object.bind(xt_set_pinning_mem_mode, "cublasXtSetPinningMemMode") &&
                        object.bind(xt_sgemm, "cublasXtSgemm");
  if (!complete) why_not = object.path() + " lacks a function";
}

void Cublas::check(int status, const char* what) {
  if (status != 0) throw std::runtime_error(fmt::format("{}: cuBLAS status {}", what, status));
}

}  // namespace gemmhoist::bench
