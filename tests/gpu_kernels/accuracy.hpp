// Errors of whole products beside cuBLAS', against sums in fp64.
#pragma once

#include <vector>

#include "bench.hpp"
#include "driver.hpp"

namespace gemmhoist::gpu_kernels {

// For each shape and family: ||C - R|| / ||R||, the largest error and the mean signed error of a component in
// units of 2^-24 (|A||B|)ij, over some whole columns of C; and the share of tiles that fp32 made.
void print_accuracy(Gpu& gpu, const std::vector<const KernelDescriptor*>& kernels,
                    const std::vector<bench::Extents>& shapes);

}  // namespace gemmhoist::gpu_kernels
