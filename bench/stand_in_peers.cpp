// Stand-ins for libcudart, libcublas and libnvblas in one library: the GPU is host memory and the product a
// plain loop. With them a machine without a GPU walks every path of the benchmark.
// GEMMHOIST_TEST_STAND_IN_WRONG=cublas, xt or nvblas makes that product lose its last k, which the benchmark
// must report.
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#define STAND_IN extern "C" __attribute__((visibility("default")))

namespace {

struct Event {
  std::chrono::steady_clock::time_point at;
};

struct Problem {
  bool trans_a, trans_b;
  std::size_t m, n, k;
  float alpha;
  const float* a;
  std::size_t lda;
  const float* b;
  std::size_t ldb;
  float beta;
  float* c;
  std::size_t ldc;
};

bool wrong(const char* who) {
  const char* chosen = std::getenv("GEMMHOIST_TEST_STAND_IN_WRONG");
  return chosen != nullptr && std::strcmp(chosen, who) == 0;
}

void multiply(const Problem& p, const char* who) {
  const std::size_t k = wrong(who) ? p.k - 1 : p.k;
  for (std::size_t j = 0; j < p.n; ++j) {
    for (std::size_t i = 0; i < p.m; ++i) {
      float sum = 0;
      for (std::size_t l = 0; l < k; ++l) {
        sum += (p.trans_a ? p.a[l + i * p.lda] : p.a[i + l * p.lda]) *
               (p.trans_b ? p.b[j + l * p.ldb] : p.b[l + j * p.ldb]);
      }
      float& c = p.c[i + j * p.ldc];
      c = p.alpha * sum + (p.beta == 0.0f ? 0.0f : p.beta * c);
    }
  }
}

}  // namespace

// --- the CUDA runtime ---

STAND_IN int cudaGetDeviceCount(int* count) {
  *count = 1;
  return 0;
}
STAND_IN int cudaSetDevice(int device) {
  return device;
}
STAND_IN int cudaMalloc(void** data, std::size_t bytes) {
  *data = std::malloc(bytes);
  return 0;
}
STAND_IN int cudaFree(void* data) {
  std::free(data);
  return 0;
}
STAND_IN int cudaMallocHost(void** data, std::size_t bytes) {
  *data = std::malloc(bytes);
  return 0;
}
STAND_IN int cudaFreeHost(void* data) {
  std::free(data);
  return 0;
}
STAND_IN int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, void*) {
  std::memcpy(to, from, bytes);
  return 0;
}
STAND_IN int cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                               std::size_t width, std::size_t height, int, void*) {
  for (std::size_t row = 0; row < height; ++row) {
    std::memcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch,
                width);
  }
  return 0;
}
STAND_IN int cudaStreamCreateWithFlags(void** stream, unsigned) {
  *stream = nullptr;
  return 0;
}
STAND_IN int cudaStreamSynchronize(void*) {
  return 0;
}
STAND_IN int cudaDeviceSynchronize() {
  return 0;
}
STAND_IN int cudaEventCreate(void** event) {
  *event = new Event;  // as long as the process
  return 0;
}
STAND_IN int cudaEventRecord(void* event, void*) {
  static_cast<Event*>(event)->at = std::chrono::steady_clock::now();
  return 0;
}
STAND_IN int cudaEventElapsedTime(float* milliseconds, void* begin, void* end) {
  const auto span = static_cast<Event*>(end)->at - static_cast<Event*>(begin)->at;
  *milliseconds = std::chrono::duration<float, std::milli>(span).count();
  return 0;
}
STAND_IN int cudaGetLastError() {
  return 0;
}
STAND_IN int cudaDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
STAND_IN int cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return 0;
}
STAND_IN const char* cudaGetErrorString(int) {
  return "stand-in";
}

// --- cuBLAS and cuBLASXt ---

STAND_IN int cublasCreate_v2(void** handle) {
  static int any;
  *handle = &any;
  return 0;
}
STAND_IN int cublasSetStream_v2(void*, void*) {
  return 0;
}
STAND_IN int cublasSgemm_v2(void*, int ta, int tb, int m, int n, int k, const float* alpha, const float* a,
                            int lda, const float* b, int ldb, const float* beta, float* c, int ldc) {
  const auto size = [](int x) { return static_cast<std::size_t>(x); };
  multiply(
      {ta == 1, tb == 1, size(m), size(n), size(k), *alpha, a, size(lda), b, size(ldb), *beta, c, size(ldc)},
      "cublas");
  return 0;
}
STAND_IN int cublasXtCreate(void** handle) {
  return cublasCreate_v2(handle);
}
STAND_IN int cublasXtDeviceSelect(void*, int count, int* devices) {
  return count == 1 && devices[0] == 0 ? 0 : 7;  // 7: invalid value
}
STAND_IN int cublasXtSetBlockDim(void*, int block) {
  return block > 0 ? 0 : 7;
}
STAND_IN int cublasXtSetPinningMemMode(void*, int mode) {
  return mode == 0 || mode == 1 ? 0 : 7;
}
STAND_IN int cublasXtSgemm(void*, int ta, int tb, std::size_t m, std::size_t n, std::size_t k,
                           const float* alpha, const float* a, std::size_t lda, const float* b,
                           std::size_t ldb, const float* beta, float* c, std::size_t ldc) {
  multiply({ta == 1, tb == 1, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc}, "xt");
  return 0;
}

// --- NVBLAS: silent products, but it does want its configuration ---

STAND_IN void sgemm_(const char* ta, const char* tb, const int* m, const int* n, const int* k,
                     const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                     const float* beta, float* c, const int* ldc) {
  if (std::getenv("NVBLAS_CONFIG_FILE") == nullptr) std::abort();
  const auto size = [](const int* x) { return static_cast<std::size_t>(*x); };
  multiply({*ta == 'T', *tb == 'T', size(m), size(n), size(k), *alpha, a, size(lda), b, size(ldb), *beta, c,
            size(ldc)},
           "nvblas");
}
