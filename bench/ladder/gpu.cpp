#include "gpu.hpp"

#include <algorithm>
#include <random>
#include <vector>

namespace gemmhoist::ladder {

void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

std::string why_no_gpu() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) return cudaGetErrorString(status);
  return count == 0 ? "no GPU" : "";
}

Library Library::from_file(const std::string& path) {
  cudaLibrary_t library = nullptr;
  require(cudaLibraryLoadFromFile(&library, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          path.c_str());
  return Library(library);
}

Library Library::from_memory(const void* image) {
  cudaLibrary_t library = nullptr;
  require(cudaLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0),
          "cudaLibraryLoadData");
  return Library(library);
}

cudaKernel_t Library::kernel(const char* symbol, int dynamic_shared_bytes) const {
  cudaKernel_t kernel = nullptr;
  require(cudaLibraryGetKernel(&kernel, library_, symbol), symbol);
  require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic_shared_bytes),
          symbol);
  return kernel;
}

Resources resources_of(cudaKernel_t kernel, int threads, int dynamic_shared_bytes) {
  cudaFuncAttributes facts{};
  require(cudaFuncGetAttributes(&facts, kernel), "cudaFuncGetAttributes");
  Resources r;
  r.registers = facts.numRegs;
  r.local_bytes = static_cast<int>(facts.localSizeBytes);
  r.shared_bytes = static_cast<int>(facts.sharedSizeBytes) + dynamic_shared_bytes;
  require(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&r.blocks_per_sm, kernel, threads,
                                                        static_cast<std::size_t>(dynamic_shared_bytes)),
          "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  int threads_a_sm = 0;
  require(cudaDeviceGetAttribute(&threads_a_sm, cudaDevAttrMaxThreadsPerMultiProcessor, 0),
          "cudaDeviceGetAttribute");
  r.occupancy = static_cast<double>(r.blocks_per_sm) * threads / threads_a_sm;
  return r;
}

void launch(cudaKernel_t kernel, dim3 grid, int threads, int dynamic_shared_bytes, void* params) {
  void* arguments[] = {params};
  require(cudaLaunchKernel(kernel, grid, dim3(static_cast<unsigned>(threads)), arguments,
                           static_cast<std::size_t>(dynamic_shared_bytes), nullptr),
          "cudaLaunchKernel");
}

void fill_random(float* to, std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> block(std::min<std::size_t>(count, (1 << 20) + 7));
  for (float& value : block) value = uniform(random);
  for (std::size_t at = 0; at < count; at += block.size())
    require(cudaMemcpy(to + at, block.data(), std::min(block.size(), count - at) * sizeof(float),
                       cudaMemcpyHostToDevice),
            "cudaMemcpy");
}

Stopwatch::Stopwatch() {
  require(cudaEventCreate(&begin_), "cudaEventCreate");
  require(cudaEventCreate(&end_), "cudaEventCreate");
}

Stopwatch::~Stopwatch() {
  cudaEventDestroy(begin_);
  cudaEventDestroy(end_);
}

void Stopwatch::start() {
  require(cudaEventRecord(begin_, nullptr), "cudaEventRecord");
}

double Stopwatch::stop_s() {
  require(cudaEventRecord(end_, nullptr), "cudaEventRecord");
  require(cudaEventSynchronize(end_), "cudaEventSynchronize");
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
  return milliseconds * 1e-3;
}

}  // namespace gemmhoist::ladder
