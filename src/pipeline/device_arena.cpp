#include "pipeline/device_arena.hpp"

#include <numeric>

#include "core/checked.hpp"

namespace gemmhoist::pipeline {
namespace {

// A kernel may read a tile's width from the last row of a panel on, whatever the row's own width: the tile's
// unused lanes. The largest tile is 256 wide.
constexpr std::int64_t kPanelSlackBytes = 4096;

}  // namespace

DeviceArena::Sizes DeviceArena::sizes(const plan::Plan& plan, std::int64_t landing_bytes) noexcept {
  Sizes sizes{};
  sizes[panels_a] = plan.a_bytes * plan.panel_buffers + kPanelSlackBytes;
  sizes[panels_b] = plan.b_bytes * plan.panel_buffers + kPanelSlackBytes;
  sizes[results] = plan.c_bytes * plan.c_buffers;
  sizes[landing] = landing_bytes;
  const plan::Images& images = plan.images;
  sizes[images_a] = images.a_units * images.unit_bytes * plan.panel_buffers;
  sizes[images_b] = images.b_units * images.unit_bytes * plan.panel_buffers;
  if (images.ranged()) {
    constexpr std::int64_t kRange = sizeof(MagnitudeRange);
    sizes[ranges_a] = images.a_units * kRange * plan.panel_buffers;
    sizes[ranges_b] = images.b_units * kRange * plan.panel_buffers;
    sizes[marks] = images.mark_bytes;
  }
  return sizes;
}

std::int64_t DeviceArena::total(const Sizes& sizes) noexcept {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

bool DeviceArena::holds(const Sizes& sizes) const noexcept {
  for (int i = 0; i < kinds_; ++i) {
    if (held_[i] < sizes[i]) return false;
  }
  return true;
}

Status DeviceArena::reserve(device::Device& device, const Sizes& sizes, std::int64_t limit) noexcept {
  std::int64_t after = 0;
  for (int i = 0; i < kinds_; ++i) after += held_[i] < sizes[i] ? sizes[i] : held_[i];
  if (after > limit) GEMMHOIST_RETURN_IF_FAILED(release_all(device));
  for (int i = 0; i < kinds_; ++i) {
    if (held_[i] >= sizes[i]) continue;
    GEMMHOIST_RETURN_IF_FAILED(release(device, i));
  }
  for (int i = 0; i < kinds_; ++i) {
    if (held_[i] >= sizes[i]) continue;
    GEMMHOIST_RETURN_IF_FAILED(device.allocate(static_cast<std::size_t>(sizes[i]), pointers_[i]));
    held_[i] = sizes[i];
  }
  return {};
}

Status DeviceArena::release(device::Device& device, int kind) noexcept {
  const device::DevicePointer pointer = pointers_[kind];
  if (pointer == 0) return {};
  // Forgotten first: where the device refuses, the memory is lost rather than given back twice.
  pointers_[kind] = 0;
  held_[kind] = 0;
  return device.release(pointer);
}

Status DeviceArena::release_all(device::Device& device) noexcept {
  Status first;
  for (int i = 0; i < kinds_; ++i) {
    if (Status status = release(device, i); first.ok()) first = status;
  }
  return first;
}

}  // namespace gemmhoist::pipeline
