// Peers of NVIDIA's cuBLAS: kernel only, copy in and multiply and copy out, and cuBLASXt.
#include <fmt/format.h>

#include <stdexcept>

#include "peer.hpp"
#include "sampling.hpp"

namespace gemmhoist::bench {
namespace {

int operation(Transpose trans) {
  return trans == Transpose::yes ? kOpT : kOpN;
}

struct DeviceMatrix {
  float* data = nullptr;
  std::int64_t rows = 0, columns = 0, ld = 0;  // ld: of the host matrix; the device one is tight
};

// cuBLAS on one stream, with device buffers made before the clock starts.
class PlainCublas final : public Peer {
 public:
  PlainCublas(const CudaRuntime& cuda, const Cublas& cublas, bool copies, Memory where)
      : cuda_(cuda), cublas_(cublas), copies_(copies) {
    memory = where;
    name = copies ? (where == Memory::pinned ? "cuBLAS pinned" : "cuBLAS") : "cuBLAS kernel";
  }
  ~PlainCublas() override { free_all(); }

  void begin(Workload& workload) override {
    workload_ = &workload;
    if (handle_ == nullptr) make_handle();
    const GemmCall& call = workload.call();
    const bool plain_a = call.trans_a == Transpose::no, plain_b = call.trans_b == Transpose::no;
    a_ = make_matrix(plain_a ? call.m : call.k, plain_a ? call.k : call.m, call.lda);
    b_ = make_matrix(plain_b ? call.k : call.n, plain_b ? call.n : call.k, call.ldb);
    c_ = make_matrix(call.m, call.n, call.ldc);
    if (!copies_) {
      upload(a_, call.a);
      upload(b_, call.b);
      upload(c_, call.c);
      cuda_.check(cuda_.stream_synchronize(stream_), "upload");
    }
  }
  void end() override { free_all(); }

  void reset() override {
    Peer::reset();
    if (!copies_) {
      upload(c_, workload_->call().c);
      cuda_.check(cuda_.stream_synchronize(stream_), "upload");
    }
  }
  std::string check() override {
    if (!copies_) {
      download(c_, workload_->call().c);
      cuda_.check(cuda_.stream_synchronize(stream_), "download");
    }
    return Peer::check();
  }

  CallTimes call() override {
    const GemmCall& call = workload_->call();
    const double start = now_s();
    if (copies_) {
      upload(a_, call.a);
      upload(b_, call.b);
      if (call.beta != 0.0f) upload(c_, call.c);
    }
    cuda_.check(cuda_.event_record(before_, stream_), "cudaEventRecord");
    Cublas::check(cublas_.sgemm(handle_, operation(call.trans_a), operation(call.trans_b),
                                static_cast<int>(call.m), static_cast<int>(call.n), static_cast<int>(call.k),
                                &call.alpha, a_.data, static_cast<int>(a_.rows), b_.data,
                                static_cast<int>(b_.rows), &call.beta, c_.data, static_cast<int>(c_.rows)),
                  "cublasSgemm");
    cuda_.check(cuda_.event_record(after_, stream_), "cudaEventRecord");
    if (copies_) download(c_, call.c);
    CallTimes times;
    times.submit_s = now_s() - start;
    cuda_.check(cuda_.stream_synchronize(stream_), "cudaStreamSynchronize");
    times.end_to_end_s = now_s() - start;
    float milliseconds = 0;
    cuda_.check(cuda_.event_elapsed_ms(&milliseconds, before_, after_), "cudaEventElapsedTime");
    times.kernel_s = static_cast<double>(milliseconds) * 1e-3;
    if (!copies_) times.end_to_end_s = kNoClock;  // nobody's matrices start and end on the GPU here
    times.route = "gpu";
    return times;
  }

 private:
  void make_handle() {
    constexpr unsigned kNonBlocking = 1;
    cuda_.check(cuda_.stream_create(&stream_, kNonBlocking), "cudaStreamCreate");
    cuda_.check(cuda_.event_create(&before_), "cudaEventCreate");
    cuda_.check(cuda_.event_create(&after_), "cudaEventCreate");
    Cublas::check(cublas_.create(&handle_), "cublasCreate");
    Cublas::check(cublas_.set_stream(handle_, stream_), "cublasSetStream");
  }
  DeviceMatrix make_matrix(std::int64_t rows, std::int64_t columns, std::int64_t ld) const {
    DeviceMatrix matrix{nullptr, rows, columns, ld};
    void* data = nullptr;
    cuda_.check(cuda_.malloc_device(&data, static_cast<std::size_t>(rows * columns) * sizeof(float)),
                "cudaMalloc");
    matrix.data = static_cast<float*>(data);
    return matrix;
  }
  void free_all() {
    for (DeviceMatrix* matrix : {&a_, &b_, &c_}) {
      if (matrix->data != nullptr) cuda_.free_device(matrix->data);
      *matrix = {};
    }
  }
  void copy(void* to, std::int64_t ld_to, const void* from, std::int64_t ld_from, const DeviceMatrix& matrix,
            int kind) const {
    const auto bytes = [](std::int64_t floats) { return static_cast<std::size_t>(floats) * sizeof(float); };
    if (matrix.ld == matrix.rows) {
      cuda_.check(cuda_.memcpy_async(to, from, bytes(matrix.rows * matrix.columns), kind, stream_),
                  "cudaMemcpyAsync");
      return;
    }
    cuda_.check(cuda_.memcpy_2d_async(to, bytes(ld_to), from, bytes(ld_from), bytes(matrix.rows),
                                      static_cast<std::size_t>(matrix.columns), kind, stream_),
                "cudaMemcpy2DAsync");
  }
  void upload(const DeviceMatrix& matrix, const float* host) const {
    copy(matrix.data, matrix.rows, host, matrix.ld, matrix, kHostToDevice);
  }
  void download(const DeviceMatrix& matrix, float* host) const {
    copy(host, matrix.ld, matrix.data, matrix.rows, matrix, kDeviceToHost);
  }

  const CudaRuntime& cuda_;
  const Cublas& cublas_;
  bool copies_;
  CudaStream stream_ = nullptr;
  CudaEvent before_ = nullptr, after_ = nullptr;
  CublasHandle handle_ = nullptr;
  DeviceMatrix a_, b_, c_;
};

// cuBLASXt takes host pointers and does its own tiling. One handle a setting: its block size is set once.
class CublasXt final : public Peer {
 public:
  CublasXt(const CudaRuntime& cuda, const Cublas& cublas, Memory where, bool own_pinning, int block)
      : cuda_(cuda), cublas_(cublas), own_pinning_(own_pinning), block_(block) {
    memory = where;
    setting = fmt::format("block={}", block);
  }

  void begin(Workload& workload) override {
    workload_ = &workload;
    if (handle_ != nullptr) return;
    int device = 0;
    constexpr int kPinningOff = 0, kPinningOn = 1;
    Cublas::check(cublas_.xt_create(&handle_), "cublasXtCreate");
    Cublas::check(cublas_.xt_device_select(handle_, 1, &device), "cublasXtDeviceSelect");
    Cublas::check(cublas_.xt_set_block_dim(handle_, block_), "cublasXtSetBlockDim");
    Cublas::check(cublas_.xt_set_pinning_mem_mode(handle_, own_pinning_ ? kPinningOn : kPinningOff),
                  "cublasXtSetPinningMemMode");
  }
  CallTimes call() override {
    const GemmCall& call = workload_->call();
    const auto size = [](std::int64_t x) { return static_cast<std::size_t>(x); };
    CallTimes times;
    const double start = now_s();
    Cublas::check(cublas_.xt_sgemm(handle_, operation(call.trans_a), operation(call.trans_b), size(call.m),
                                   size(call.n), size(call.k), &call.alpha, call.a, size(call.lda), call.b,
                                   size(call.ldb), &call.beta, call.c, size(call.ldc)),
                  "cublasXtSgemm");
    cuda_.check(cuda_.device_synchronize(), "cudaDeviceSynchronize");
    times.end_to_end_s = now_s() - start;
    times.route = "gpu";
    return times;
  }

 private:
  const CudaRuntime& cuda_;
  const Cublas& cublas_;
  bool own_pinning_;
  int block_;
  CublasXtHandle handle_ = nullptr;
};

std::string missing(const CudaRuntime& cuda, const Cublas& cublas) {
  return cuda.usable() ? cublas.why_not : cuda.why_not;
}

}  // namespace

PeerGroup make_cublas_kernel(const CudaRuntime& cuda, const Cublas& cublas) {
  PeerGroup group{"cuBLAS kernel", missing(cuda, cublas), {}};
  if (group.why_not.empty()) {
    group.settings.push_back(std::make_unique<PlainCublas>(cuda, cublas, false, Memory::pageable));
  }
  return group;
}

PeerGroup make_cublas(const CudaRuntime& cuda, const Cublas& cublas, Memory memory) {
  PeerGroup group{memory == Memory::pinned ? "cuBLAS pinned" : "cuBLAS", missing(cuda, cublas), {}};
  if (group.why_not.empty()) {
    group.settings.push_back(std::make_unique<PlainCublas>(cuda, cublas, true, memory));
  }
  return group;
}

PeerGroup make_cublasxt(const PeerOptions& options, const CudaRuntime& cuda, const Cublas& cublas,
                        Memory memory, bool own_pinning) {
  const char* suffix = memory == Memory::pinned ? " pinned" : own_pinning ? " own pinning" : "";
  PeerGroup group{std::string("cuBLASXt") + suffix, missing(cuda, cublas), {}};
  if (!group.why_not.empty()) return group;
  for (const int block : options.tiles) {
    group.settings.push_back(std::make_unique<CublasXt>(cuda, cublas, memory, own_pinning, block));
    group.settings.back()->name = group.name;
  }
  return group;
}

}  // namespace gemmhoist::bench
