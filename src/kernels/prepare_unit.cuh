// How a block of a prepare kernel reads one unit of an image: 128 rows by 32 steps of k, from an operand in
// either order.
//
// A thread reads `depth` steps of one row at a time, which are 16 bytes of a plane's row. Four neighbouring
// threads follow each other along k, then come the rows: where rows are contiguous a warp's load is four runs
// of 32 bytes, whole sectors; where k is, every row gives one run. What is written is a contiguous run a
// warp.
#pragma once

#include <cstdint>

#include "core/kernel_descriptor.hpp"
#include "kernels/operand_image.hpp"
#include "kernels/tile_order.hpp"

namespace gemmhoist::kernels {

struct PreparedUnit {
  std::int64_t row0, k0, index;  // index: in the image and in the ranges

  __device__ explicit PreparedUnit(const PrepareKernelParams& params) {
    const std::uint32_t k_units = static_cast<std::uint32_t>(params.padded_k / kImageK);
    const std::int64_t t = blockIdx.x / k_units, q = blockIdx.x % k_units;
    row0 = t * kImageRows;
    k0 = q * kImageK;
    index = t * params.unit_pitch + q;
  }
};

// Values at `row` and `k` to `k + depth`, zero outside the operand.
template <int depth>
__device__ __forceinline__ void read_run(const PrepareKernelParams& params, std::int64_t row, std::int64_t k,
                                         float (&value)[depth]) {
  const float* const from = params.source + row * params.row_stride + k * params.k_stride;
  const std::int64_t left = row < params.rows ? params.k - k : 0;
#pragma unroll
  for (int i = 0; i < depth; ++i) value[i] = i < left ? from[i * params.k_stride] : 0.0f;
}

}  // namespace gemmhoist::kernels
