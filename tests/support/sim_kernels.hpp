// The simulated device's kernels: descriptors of its own, and reference loops on host memory.
#pragma once

#include <span>

#include "core/kernel_descriptor.hpp"
#include "support/simulation.hpp"

namespace gemmhoist::test {

std::span<const KernelDescriptor> sim_kernels(TileSizes tiles);
// Blocks that all SMs hold at once, and the time of one of a kernel's blocks over `k`, on the virtual clock.
int sim_slots(const SimulationSettings& settings);
double sim_block_seconds(const SimulationSettings& settings, const KernelDescriptor& kernel, std::int64_t k);

void sim_gemm(const GemmKernelParams& params);
void sim_transpose(const TransposeKernelParams& params);

}  // namespace gemmhoist::test
