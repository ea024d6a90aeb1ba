// Product: a matrix product with everything round it that a test wants to see: operands at guard pages, C as
// it was, and the check against fp64, element by element.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/gemm_call.hpp"
#include "support/guarded_buffer.hpp"

namespace gemmhoist::test {

struct ProductShape {
  std::int64_t m = 1, n = 1, k = 1;
  Transpose trans_a = Transpose::no, trans_b = Transpose::no;
  std::int64_t pad_a = 0, pad_b = 0, pad_c = 0;  // leading dimensions beyond the rows
  float alpha = 1, beta = 0;
};

std::string to_string(const ProductShape& shape);

enum class Values : std::uint8_t {
  symmetric,   // uniform in (-1, 1)
  positive,    // uniform in (0, 1): errors add up
  wide_range,  // each element its own power of two, 2^-30 to 2^30
};

class Product {
 public:
  // C starts as NaN where beta is zero (it must not be read), as values otherwise; padding holds a pattern.
  explicit Product(const ProductShape& shape, Values values = Values::symmetric, std::uint32_t seed = 1);

  GemmCall call() const { return call_; }
  float* a() const { return a_.data(); }
  float* b() const { return b_.data(); }
  float* c() const { return c_.data(); }
  std::size_t c_size() const { return c_.size(); }
  // Call after changing operands or C by hand.
  void remember_c();
  // C as it was at the start: for another go.
  void restore_c();
  // Empty when every element is within the error bound of the fp64 result (NaN and Inf where they belong) and
  // no padding has changed; else what is wrong first.
  std::string check() const;

 private:
  GemmCall call_;
  GuardedBuffer a_, b_, c_;
  std::vector<float> c0_;
};

// The bound itself: |result - reference| <= this, overflow aside. `magnitude` is |alpha| sum |a||b| +
// |beta||c0|.
double error_bound(std::int64_t k, double magnitude, double alpha, double beta);

// Computes a region of a call on the CPU, as the fallback would: beta applied once.
void reference_multiply(const GemmCall& call);

}  // namespace gemmhoist::test
