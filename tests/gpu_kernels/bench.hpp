// Times of product kernels beside cuBLAS, in one run, from the same panels on the device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/extents.hpp"
#include "driver.hpp"

namespace gemmhoist::gpu_kernels {

struct BenchOptions {
  std::vector<bench::Extents> shapes;
  int rounds = 5;              // contestants take turns, so that a clock that drifts meets all alike
  double round_seconds = 0.1;  // of one contestant in one round
  std::string csv;             // path, or empty
};

void bench_products(Gpu& gpu, const std::vector<const KernelDescriptor*>& kernels,
                    const BenchOptions& options);
void bench_transposes(Gpu& gpu, const std::vector<const KernelDescriptor*>& kernels,
                      const BenchOptions& options);

}  // namespace gemmhoist::gpu_kernels
