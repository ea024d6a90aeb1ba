// Loops over host memory that keep the contracts of the kernels of images (core/kernel_descriptor.hpp): what
// a device without GPU runs in their place. The order of values within a unit is their own.
#pragma once

#include "core/kernel_descriptor.hpp"

namespace gemmhoist::test {

// A product of panels: the device's own.
using PanelProduct = void (*)(const GemmKernelParams&);

void reference_prepare(Precision precision, const PrepareKernelParams& params);
void reference_image_product(Precision precision, const PreparedGemmKernelParams& params,
                             PanelProduct multiply);
// The marked tiles, from the panels.
void reference_leftover(const PreparedGemmKernelParams& params, PanelProduct multiply);

float round_to_bf16(float value);  // to nearest, ties to even
float round_to_tf32(float value);

}  // namespace gemmhoist::test
