// Exact product: small integers, whose sums single precision holds exactly, so that every element has one
// right value and large results are checked quickly.
#pragma once

#include <cstdint>
#include <string>

#include "cases/blas.hpp"

namespace gemmhoist::cases {

// Memory for the three operands, in elements of the sizes that exact_operands() says; column-major, unpadded.
struct Operands {
  float *a, *b, *c;
};
struct Extents {
  std::int64_t m, n, k;
  std::int64_t a_size() const { return m * k; }
  std::int64_t b_size() const { return k * n; }
  std::int64_t c_size() const { return m * n; }
};

void fill_exact(const Extents& extents, const Operands& operands);
GemmCall exact_call(const Extents& extents, const Operands& operands, float beta = 0);
// C as fill_exact left it is `beta` times its part; what is wrong first, else empty.
std::string check_exact(const Extents& extents, const Operands& operands, float beta = 0);
// All of it on the heap.
std::string exact_product(const Extents& extents, float beta = 0);

}  // namespace gemmhoist::cases
