// Rates of the machine, measured in the run whose results they judge, and the floors that follow from them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cuda_api.hpp"
#include "shape.hpp"

namespace gemmhoist::bench {

// Bytes a second; NaN where the machine lacks what is to be measured.
struct Rates {
  double h2d = 0, d2h = 0;           // from and to pinned memory, one direction at a time
  double h2d_beside_d2h = 0;         // each of both directions together
  double copy_in = 0, copy_out = 0;  // host: pageable to pinned, pinned to pageable
  double copy = 0;       // host: both, two bytes in for one out; the best of thread counts and chunks
  int copy_threads = 0;  // which gave `copy`
  std::size_t copy_chunk_bytes = 0;  // likewise
};

Rates measure_rates(const CudaRuntime& cuda, std::size_t bytes);

// Names and values for tables, in the order of the struct, bytes a second as GB/s.
std::vector<std::pair<std::string, double>> listed(const Rates& rates);

// max(4 (mk + kn + [beta != 0] mn) / B_h2d, 4 mn / B_d2h, 2mnk / P): no schedule ends sooner. NaN without a
// GPU.
double floor_s(const Shape& shape, const Rates& rates, double flops_per_s);

// The same with 4 (mk + kn + (1 + [beta != 0]) mn) / B_copy among the terms: the host copies every byte into
// or out of pinned memory.
double staged_floor_s(const Shape& shape, const Rates& rates, double flops_per_s);

}  // namespace gemmhoist::bench
