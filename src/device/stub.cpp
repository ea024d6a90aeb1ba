// The backend of a build without GPU code: every product is the CPU's.
#include "device/backend.hpp"

namespace gemmhoist::device {

const char* backend_name() noexcept {
  return "none";
}

bool backend_plausible() noexcept {
  return false;
}

int selected_devices(std::int32_t*, int) noexcept {
  return 0;
}

std::unique_ptr<Device> make_device(std::int32_t, Status& status) noexcept {
  status = Status(StatusCode::unavailable, "built without CUDA");
  return nullptr;
}

}  // namespace gemmhoist::device
