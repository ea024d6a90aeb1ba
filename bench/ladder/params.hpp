// What every rung of the ladder is given. Matrices are row-major and dense: A is m x k, B is k x n (for A A^T
// it is not read), C is m x n.
#pragma once

namespace gemmhoist::ladder {

struct Params {
  const float* a;
  const float* b;
  float* c;
  int m, n, k;
};

}  // namespace gemmhoist::ladder
