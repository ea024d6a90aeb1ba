// The little of the CUDA runtime that the ladder needs. Errors throw: this is a benchmark.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace gemmhoist::ladder {

void require(cudaError_t status, const char* what);

// Empty: there is a usable GPU. Otherwise why there is none.
std::string why_no_gpu();

class Library {
 public:
  static Library from_file(const std::string& path);
  static Library from_memory(const void* image);
  cudaKernel_t kernel(const char* symbol, int dynamic_shared_bytes) const;

 private:
  explicit Library(cudaLibrary_t library) : library_(library) {}
  cudaLibrary_t library_;  // lives as long as the process
};

// What the driver knows of a kernel.
struct Resources {
  int registers = 0, local_bytes = 0, shared_bytes = 0;  // local: stack and spills, a thread
  int blocks_per_sm = 0;
  double occupancy = 0;  // resident warps over the most that an SM holds
};
Resources resources_of(cudaKernel_t kernel, int threads, int dynamic_shared_bytes);

void launch(cudaKernel_t kernel, dim3 grid, int threads, int dynamic_shared_bytes, void* params);

// Device memory that goes with its owner.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) {
    require(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)), "cudaMalloc");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* get() const { return data_; }

 private:
  T* data_ = nullptr;
};

// The same numbers in (-1, 1) for the same seed, over and over, in blocks whose length divides no extent.
void fill_random(float* to, std::size_t count, unsigned seed);

class Stopwatch {
 public:
  Stopwatch();
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  void start();
  double stop_s();  // waits

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace gemmhoist::ladder
