// Checks of one product kernel.
#pragma once

#include <functional>

#include "driver.hpp"
#include "products.hpp"
#include "report.hpp"

namespace gemmhoist::gpu_kernels {

// Sizes around the tile, all families, with and without what was in C, against sums in fp64 on the host.
void check_small_products(Gpu& gpu, const KernelDescriptor& kernel, Report& report);

// Depths and extents of many tiles.
inline constexpr Shape kLargeShapes[] = {
    {1500, 1300, 704, 700}, {2049, 4097, 512, 512}, {130, 260, 16384, 16384}, {46341, 70, 32, 32}};

// Every element of what `multiply` makes of the operands, against the reference kernel.
void check_against_reference(Gpu& gpu, const KernelDescriptor& kernel, const KernelDescriptor& reference,
                             const Shape& shape, Operands operands,
                             const std::function<void(const GemmKernelParams&)>& multiply, Report& report);

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
