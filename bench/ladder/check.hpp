// Parameters of the fp64 reference and of the comparison with it.
#pragma once

#include <cstdint>

#include "bench/ladder/params.hpp"

namespace gemmhoist::ladder {

// Element (i, p) of the left operand is a[i a_row + p a_step], (p, j) of the right one b[p b_step + j b_col].
struct ReferenceParams {
  const float* a;
  const float* b;
  double* sum;        // m x n, row-major
  double* magnitude;  // of the same shape: sum over p of |a||b|
  std::int64_t a_row, a_step, b_step, b_col;
  int m, n, k;
};

struct CompareParams {
  const float* c;
  const double* sum;
  const double* magnitude;
  unsigned* wrong;
  std::int64_t count;
  int k;
};

}  // namespace gemmhoist::ladder
