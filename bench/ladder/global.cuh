// Guarded reads and writes of global memory. Outside the matrix a read gives zero, which adds nothing, and a
// write does nothing: so a tile may hang over the edge.
#pragma once

#include "bench/ladder/params.hpp"

namespace gemmhoist::ladder {

__device__ inline float load(const float* matrix, int rows, int cols, int row, int col) {
  return row < rows && col < cols ? matrix[static_cast<long long>(row) * cols + col] : 0.0f;
}

__device__ inline void store(float* matrix, int rows, int cols, int row, int col, float value) {
  if (row < rows && col < cols) matrix[static_cast<long long>(row) * cols + col] = value;
}

// Four neighbours of a row at once; `cols` and `col` are multiples of four.
__device__ inline float4 load4(const float* matrix, int rows, int cols, int row, int col) {
  if (row >= rows || col >= cols) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  return *reinterpret_cast<const float4*>(matrix + static_cast<long long>(row) * cols + col);
}

__device__ inline void store4(float* matrix, int rows, int cols, int row, int col, const float* value) {
  if (row < rows && col < cols)
    *reinterpret_cast<float4*>(matrix + static_cast<long long>(row) * cols + col) =
        make_float4(value[0], value[1], value[2], value[3]);
}

}  // namespace gemmhoist::ladder
