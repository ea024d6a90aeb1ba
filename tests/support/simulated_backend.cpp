// The simulated device as this build's backend: what carries it into the test-only library. Set by
// environment:
//   GEMMHOIST_SIM_MEMORY_MIB   device memory (512)
//   GEMMHOIST_SIM_DEVICES      number of devices (1; 0: none can be opened)
//   GEMMHOIST_SIM_REAL_TILES   1: tile sizes of the shipped kernels
//   GEMMHOIST_SIM_SLOW_FP32    1: products in fp32 take so long that a faster precision pays
//   GEMMHOIST_SIM_FAIL_AT      the k-th device call of the process fails (0: none) with
//   GEMMHOIST_SIM_ERROR          device_error, out_of_memory, device_lost or unavailable (device_error)
//   GEMMHOIST_SIM_STAY_DEAD      1: and every call after it
//   GEMMHOIST_SIM_HANG_AT      the k-th device call never returns (0: none)
//   GEMMHOIST_SIM_REPORT       1: the number of device calls is written to stderr at exit
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device/backend.hpp"
#include "support/simulation.hpp"

namespace gemmhoist::device {
namespace {

long setting(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtol(text, nullptr, 10);
}

StatusCode error_named(const char* text) {
  if (text == nullptr) return StatusCode::device_error;
  if (std::strcmp(text, "out_of_memory") == 0) return StatusCode::out_of_memory;
  if (std::strcmp(text, "device_lost") == 0) return StatusCode::device_lost;
  if (std::strcmp(text, "unavailable") == 0) return StatusCode::unavailable;
  return StatusCode::device_error;
}

// Never destroyed: its devices live until the process ends.
test::Simulation& simulation() {
  static test::Simulation* const instance = [] {
    test::SimulationSettings settings;
    settings.memory_bytes = setting("GEMMHOIST_SIM_MEMORY_MIB", 512) << 20;
    if (setting("GEMMHOIST_SIM_REAL_TILES", 0) != 0) settings.tiles = test::TileSizes::real;
    if (setting("GEMMHOIST_SIM_SLOW_FP32", 0) != 0) settings.fp32_pause_s = 0.02;
    auto* made = new test::Simulation(settings);
    test::Fault fault;
    fault.fail_at = setting("GEMMHOIST_SIM_FAIL_AT", 0);
    fault.hang_at = setting("GEMMHOIST_SIM_HANG_AT", 0);
    fault.error = error_named(std::getenv("GEMMHOIST_SIM_ERROR"));
    fault.stay_dead = setting("GEMMHOIST_SIM_STAY_DEAD", 0) != 0;
    made->arm(fault);
    return made;
  }();
  return *instance;
}

void report_calls() {
  std::fprintf(stderr, "simulated device: %lld calls\n", static_cast<long long>(simulation().calls()));
}

int device_count() {
  return static_cast<int>(setting("GEMMHOIST_SIM_DEVICES", 1));
}

}  // namespace

const char* backend_name() noexcept {
  return "simulated";
}

bool backend_plausible() noexcept {
  return device_count() > 0;
}

int selected_devices(std::int32_t* ordinals, int capacity) noexcept {
  const int count = std::min(device_count(), capacity);
  for (int i = 0; i < count; ++i) ordinals[i] = i;
  return count;
}

std::unique_ptr<Device> make_device(std::int32_t ordinal, Status& status) noexcept {
  if (setting("GEMMHOIST_SIM_REPORT", 0) != 0) (void)std::atexit(report_calls);
  status = simulation().enter_call();
  if (!status.ok()) return nullptr;
  return test::make_simulated_device(simulation(), ordinal);
}

}  // namespace gemmhoist::device
