// Blocks: how large a C block, how deep a slice, and how many buffers of each fit the device. Internal to the
// layer.
#pragma once

#include <cstdint>

#include "plan/plan.hpp"
#include "plan/schedule.hpp"
#include "plan/tiling.hpp"

namespace gemmhoist::plan {

// Buffer sizes that a cutting needs; false where one of them passes 63 bits.
struct Footprint {
  std::int64_t lda = 0, ldb = 0, ldc = 0, depth_padded = 0;
  std::int64_t a_bytes = 0, b_bytes = 0, c_bytes = 0, total_bytes = 0;
  Images images;
};
bool footprint(const PlanInput& input, const KernelSet& kernels, const Staging& staging,
               const Cutting& cutting, Footprint& result) noexcept;
bool fits(const PlanInput& input, const KernelSet& kernels, const Staging& staging,
          const Cutting& cutting) noexcept;

// One block and one slice: everything on the device at once.
Cutting whole_product(const PlanInput& input, const KernelSet& kernels) noexcept;

// Blocks of C that stay while slices of k stream past them, for products beyond the device's memory; without
// images, with smaller tiles and a smaller landing ring where nothing else fits. False where not even the
// smallest does. Closed form, no allocation: estimate_seconds uses it too.
bool choose_beyond_memory(const PlanInput& input, Staging& staging, KernelSet& kernels, Cutting& cutting,
                          double& seconds) noexcept;

}  // namespace gemmhoist::plan
