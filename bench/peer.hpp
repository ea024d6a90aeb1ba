// Peer: one way of having a product computed, timed by up to three clocks.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cuda_api.hpp"
#include "workload.hpp"

namespace gemmhoist::bench {

constexpr double kNoClock = std::numeric_limits<double>::quiet_NaN();

// The three clocks of one call. They answer different questions and are never mixed up.
struct CallTimes {
  double end_to_end_s = kNoClock;  // what the caller waits
  double submit_s = kNoClock;      // the host's own work until everything is queued
  double kernel_s = kNoClock;      // device events round the arithmetic alone
  std::string route;               // who served it, where the peer says: "gpu", "cpu", "gpu+cpu"
};

// A peer that cannot do what it is asked throws std::runtime_error with the reason.
class Peer {
 public:
  virtual ~Peer() = default;

  // Names in the tables: who, in which setting ("block=2048"), from which memory.
  std::string name, setting;
  Memory memory = Memory::pageable;

  // Before the calls on a workload, which outlives them; after them.
  virtual void begin(Workload& workload) = 0;
  virtual void end() {}
  virtual CallTimes call() = 0;
  // What is wrong with the result of one call() made after reset().
  virtual void reset() { workload_->reset_c(); }
  virtual std::string check() { return workload_->check_c(); }
  // Seconds for which the peer's threads go on spinning after a call, disturbing whoever comes next.
  virtual double settle_s() const { return 0; }

 protected:
  Workload* workload_ = nullptr;
};

// Several settings of one peer; the fastest of them at a size stands for it.
struct PeerGroup {
  std::string name;
  std::string why_not;  // not empty: it cannot run here
  std::vector<std::unique_ptr<Peer>> settings;
};

struct PeerOptions {
  std::string library;                          // libgemmhoist.so
  std::string precision;                        // its GEMMHOIST_PRECISION; "": as the environment says
  std::string openblas;                         // "": by soname
  std::string nvblas;                           // "": by soname
  std::vector<int> tiles = {1024, 2048, 4096};  // NVBLAS tile sizes, cuBLASXt block sizes
  std::string self;                             // this program, for the child processes
  bool pinned = false;                          // also our library from pinned memory
};

std::vector<PeerGroup> make_ours(const PeerOptions& options, const CudaRuntime& cuda);
PeerGroup make_openblas(const PeerOptions& options);
PeerGroup make_cublas_kernel(const CudaRuntime& cuda, const Cublas& cublas);
PeerGroup make_cublas(const CudaRuntime& cuda, const Cublas& cublas, Memory memory);
PeerGroup make_cublasxt(const PeerOptions& options, const CudaRuntime& cuda, const Cublas& cublas,
                        Memory memory, bool own_pinning);
PeerGroup make_nvblas(const PeerOptions& options, const CudaRuntime& cuda, bool autopin);

// The other end of an NVBLAS peer: NVBLAS reads its configuration once, when it is loaded, so each
// configuration lives in a process of its own and is told over its standard input what to do.
int run_nvblas_child(const std::string& nvblas);

}  // namespace gemmhoist::bench
