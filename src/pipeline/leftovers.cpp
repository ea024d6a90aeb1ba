// Leftovers: how many tiles of a product of images were made in fp32. The device marks them, a byte a tile;
// the marks come home behind the last piece of C, while the copy threads still write it.
#include <algorithm>

#include "pipeline/execution.hpp"

namespace gemmhoist::pipeline {

using device::Stream;

Status Leftovers::advance(bool c_is_queued, bool& progressed) noexcept {
  if (finished() || !c_is_queued) return {};
  if (under_way_ > 0) {
    device::EventState state{};
    GEMMHOIST_RETURN_IF_FAILED(context_.device.query(Events::kMarks, state));
    if (state == device::EventState::pending) return {};
    const auto* marks = reinterpret_cast<const unsigned char*>(context_.h2d_slots);
    count_ += std::count_if(marks, marks + under_way_, [](unsigned char mark) { return mark != 0; });
    home_ += under_way_;
    under_way_ = 0;
    progressed = true;
    return {};
  }
  // By now every upload has left its slot: the results that are queued before this on the same stream are
  // made of them.
  const std::int64_t room = context_.plan.h2d_slots * context_.plan.chunk_bytes;
  const std::int64_t bytes = std::min(room, context_.plan.images.mark_bytes - home_);
  device::Copy2D copy;
  copy.host = context_.h2d_slots;
  copy.device = context_.arena.at(DeviceArena::marks) + static_cast<std::uint64_t>(home_);
  copy.host_pitch = copy.device_pitch = copy.width = static_cast<std::size_t>(bytes);
  copy.height = 1;
  GEMMHOIST_RETURN_IF_FAILED(context_.device.copy_d2h(Stream::d2h, copy));
  GEMMHOIST_RETURN_IF_FAILED(context_.record(Events::kMarks, Stream::d2h));
  under_way_ = bytes;
  progressed = true;
  return {};
}

}  // namespace gemmhoist::pipeline
