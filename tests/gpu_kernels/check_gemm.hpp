// Checks of one product kernel.
#pragma once

#include "driver.hpp"
#include "report.hpp"

namespace gemmhoist::gpu_kernels {

// Sizes around the tile, all families, with and without what was in C, against sums in fp64 on the host.
void check_small_products(Gpu& gpu, const KernelDescriptor& kernel, Report& report);

// Sizes of many tiles, every element against the reference kernel, which small products have checked.
void check_large_products(Gpu& gpu, const KernelDescriptor& kernel, const KernelDescriptor& reference,
                          Report& report);

// Prepares operands of both orders and compares images and ranges bit for bit with what they should be.
void check_prepare(Gpu& gpu, const KernelDescriptor& kernel, Report& report);

// A product of images with its companions (prepared.hpp): as the other products; where tiles are out of
// range, which ones, and that those have the reference kernel's bits.
void check_prepared_products(Gpu& gpu, const KernelDescriptor& kernel, const KernelDescriptor& reference,
                             Report& report);

void check_transposes(Gpu& gpu, const KernelDescriptor& kernel, Report& report);

}  // namespace gemmhoist::gpu_kernels
