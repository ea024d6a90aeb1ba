// Workload: the operands of one shape in host memory, touched and random, and a check of what a peer made of
// them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/gemm_call.hpp"
#include "cuda_api.hpp"
#include "shape.hpp"

namespace gemmhoist::bench {

enum class Memory : std::uint8_t { pageable, pinned };

struct FreeBuffer {
  const CudaRuntime* cuda = nullptr;  // null: mmap'ed
  std::size_t bytes = 0;
  void operator()(float* data) const;
};
using Buffer = std::unique_ptr<float, FreeBuffer>;

// Page-aligned, every page touched. cuda is needed for pinned memory only.
Buffer allocate(std::size_t floats, Memory memory, const CudaRuntime* cuda);

// How exact a peer promises to be: as sums of single-precision FMAs, or as products of 11-bit operands.
enum class Arithmetic : std::uint8_t { single, tf32 };

// A, B and C of a shape, ready to be handed to any peer. Values are uniform in (-1, 1), the same for the same
// shape in every process, so that a peer in a child process computes on the same numbers.
class Workload {
 public:
  Workload(const Shape& shape, Memory memory, const CudaRuntime* cuda);

  const Shape& shape() const { return shape_; }
  Memory memory() const { return memory_; }
  const GemmCall& call() const { return call_; }  // column-major, with pointers

  // Gives C back its first values.
  void reset_c();

  // What is wrong with C after one call from its first values, or "". Two nets: sampled elements against fp64
  // with the element-wise bound (k+3) 2^-24 (|alpha||A||B| + |beta||C0|), and the whole of C by its product
  // with a random vector of signs (Freivalds), which no lost tile or k block survives. Under tf32 both nets
  // are as much wider as its operands are shorter.
  std::string check_c(Arithmetic arithmetic = Arithmetic::single) const;

 private:
  void make_reference();
  std::string check_samples(Arithmetic arithmetic) const;
  std::string check_rows(Arithmetic arithmetic) const;

  Shape shape_;
  Memory memory_;
  GemmCall call_;
  Buffer a_, b_, c_;
  std::vector<double> signs_;    // x, of n elements
  std::vector<double> product_;  // alpha op(A) (op(B) x) + beta C0 x
  std::vector<double>
      magnitude_;  // |alpha||op(A)| (|op(B)| 1) / n + |beta||C0| 1 / n: a typical |A||B| of the row
};

}  // namespace gemmhoist::bench
