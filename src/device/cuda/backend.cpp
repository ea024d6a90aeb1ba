// The CUDA backend.
#include "device/backend.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "config/options.hpp"
#include "device/cuda/cuda_device.hpp"
#include "device/cuda/driver_table.hpp"
#include "device/cuda/plausible.hpp"
#include "kernels/registry.hpp"

namespace gemmhoist::device {
namespace {

enum class Answer : std::uint8_t { unknown, no, yes };
constinit std::atomic<Answer> plausible{Answer::unknown};

// The number of devices where the driver is up, else 1 (device 0 is the guess until then).
int device_count() noexcept {
  const cuda::DriverTable* driver = cuda::driver_if_loaded();
  int count = 0;
  if (driver == nullptr || driver->device_get_count(&count) != cuda::result::success) return 1;
  return count;
}

}  // namespace

const char* backend_name() noexcept {
  return "cuda";
}

bool backend_plausible() noexcept {
  Answer answer = plausible.load(std::memory_order_relaxed);
  if (answer == Answer::unknown) {
    const int saved = errno;
    // Two threads may come here at once: both find the same.
    const bool yes = !kernels::images().empty() &&
                     !cuda::hides_all_devices(std::getenv("CUDA_VISIBLE_DEVICES")) && cuda::driver_in_sight();
    answer = yes ? Answer::yes : Answer::no;
    plausible.store(answer, std::memory_order_relaxed);
    errno = saved;
  }
  return answer == Answer::yes;
}

int selected_devices(std::int32_t* ordinals, int capacity) noexcept {
  const char* list = config::options().devices;
  int written = 0;
  if (std::strcmp(list, "all") == 0) {
    const int count = device_count();
    while (written < capacity && written < count) {
      ordinals[written] = written;
      ++written;
    }
    return written;
  }
  // The option's table has let only a list of small decimal numbers through, all different.
  for (const char* p = list; *p != '\0' && written < capacity;) {
    std::int32_t ordinal = 0;
    for (; *p >= '0' && *p <= '9'; ++p) ordinal = ordinal * 10 + (*p - '0');
    ordinals[written++] = ordinal;
    while (*p != '\0' && (*p < '0' || *p > '9')) ++p;
  }
  return written;
}

std::unique_ptr<Device> make_device(std::int32_t ordinal, Status& status) noexcept {
  const cuda::DriverTable* driver = cuda::driver(status);
  if (driver == nullptr) return nullptr;
  return cuda::open_device(*driver, ordinal, kernels::all(), kernels::images(), status);
}

}  // namespace gemmhoist::device
