// Device arena: the device memory that calls share, kept from one call to the next. One allocation for each
// kind of buffer, grown when a plan wants more.
#pragma once

#include <array>
#include <cstdint>

#include "device/device.hpp"
#include "plan/plan.hpp"

namespace gemmhoist::pipeline {

class DeviceArena {
 public:
  // Images, their units' ranges and the marks of tiles: only where a plan has images.
  enum Kind { panels_a, panels_b, results, landing, images_a, images_b, ranges_a, ranges_b, marks, kinds_ };
  using Sizes = std::array<std::int64_t, kinds_>;

  // What the plan's buffers come to. `landing_bytes`: the landing ring.
  static Sizes sizes(const plan::Plan& plan, std::int64_t landing_bytes) noexcept;
  static std::int64_t total(const Sizes& sizes) noexcept;

  bool holds(const Sizes& sizes) const noexcept;
  // Makes every buffer at least as large as asked. A buffer that grows is given back before it is asked for
  // again, and where the sum would pass `limit` all of them are.
  Status reserve(device::Device& device, const Sizes& sizes, std::int64_t limit) noexcept;
  Status release_all(device::Device& device) noexcept;

  device::DevicePointer at(Kind kind) const noexcept { return pointers_[kind]; }
  std::int64_t held_bytes() const noexcept { return total(held_); }

 private:
  Status release(device::Device& device, int kind) noexcept;

  std::array<device::DevicePointer, kinds_> pointers_{};
  Sizes held_{};
};

}  // namespace gemmhoist::pipeline
