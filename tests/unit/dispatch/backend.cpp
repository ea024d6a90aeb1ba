#include "backend.hpp"

#include <unistd.h>

#include <algorithm>

#include "device/backend.hpp"

namespace gemmhoist {
namespace test {
namespace {

constexpr int kMostDevices = 4;

// A simulated device whose calls take longer: classify() is asked once for C in every call.
class SlowDevice final : public device::Device {
 public:
  explicit SlowDevice(std::unique_ptr<device::Device> device) : device_(std::move(device)) {}

  const device::DeviceProperties& properties() const noexcept override { return device_->properties(); }
  std::span<const KernelDescriptor> kernels() const noexcept override { return device_->kernels(); }
  Status free_memory(std::size_t& bytes) noexcept override { return device_->free_memory(bytes); }
  Status allocate(std::size_t bytes, device::DevicePointer& pointer) noexcept override {
    return device_->allocate(bytes, pointer);
  }
  Status release(device::DevicePointer pointer) noexcept override { return device_->release(pointer); }
  Status pin(void* memory, std::size_t bytes) noexcept override { return device_->pin(memory, bytes); }
  Status unpin(void* memory) noexcept override { return device_->unpin(memory); }
  device::HostMemory classify(const void* memory, std::size_t width, std::size_t pitch,
                              std::size_t rows) noexcept override {
    // Three operands a call.
    if (const int delay = backend().call_delay_us.load()) usleep(static_cast<useconds_t>(delay / 3));
    return device_->classify(memory, width, pitch, rows);
  }
  Status copy_h2d(device::Stream stream, const device::Copy2D& copy) noexcept override {
    return device_->copy_h2d(stream, copy);
  }
  Status copy_d2h(device::Stream stream, const device::Copy2D& copy) noexcept override {
    return device_->copy_d2h(stream, copy);
  }
  Status fill_zero(device::Stream stream, device::DevicePointer pointer, std::size_t pitch, std::size_t width,
                   std::size_t height) noexcept override {
    return device_->fill_zero(stream, pointer, pitch, width, height);
  }
  Status launch(device::Stream stream, const KernelDescriptor& kernel,
                const GemmKernelParams& params) noexcept override {
    return device_->launch(stream, kernel, params);
  }
  Status launch(device::Stream stream, const KernelDescriptor& kernel,
                const TransposeKernelParams& params) noexcept override {
    return device_->launch(stream, kernel, params);
  }
  Status launch(device::Stream stream, const KernelDescriptor& kernel,
                const PrepareKernelParams& params) noexcept override {
    return device_->launch(stream, kernel, params);
  }
  Status launch(device::Stream stream, const KernelDescriptor& kernel,
                const PreparedGemmKernelParams& params) noexcept override {
    return device_->launch(stream, kernel, params);
  }
  Status record(device::Event event, device::Stream stream) noexcept override {
    return device_->record(event, stream);
  }
  Status wait(device::Stream stream, device::Event event) noexcept override {
    return device_->wait(stream, event);
  }
  Status query(device::Event event, device::EventState& state) noexcept override {
    return device_->query(event, state);
  }
  Status elapsed_seconds(device::Event begin, device::Event end, double& seconds) noexcept override {
    return device_->elapsed_seconds(begin, end, seconds);
  }
  Status drain(std::int64_t deadline_ns) noexcept override { return device_->drain(deadline_ns); }

 private:
  std::unique_ptr<device::Device> device_;
};

}  // namespace

TestBackend& backend() {
  static auto* const instance = new TestBackend;  // never destroyed: workers outlive main
  return *instance;
}

Simulation& simulation(int ordinal) {
  static auto* const simulations = [] {
    SimulationSettings settings;
    settings.tiles = TileSizes::real;
    settings.memory_bytes = std::int64_t{64} << 20;
    auto* made = new std::array<Simulation*, kMostDevices>;
    for (Simulation*& each : *made) each = new Simulation(settings);
    return made;
  }();
  return *simulations->at(static_cast<std::size_t>(ordinal));
}

}  // namespace test

namespace device {

const char* backend_name() noexcept {
  return "simulated";
}

bool backend_plausible() noexcept {
  return test::backend().devices.load() > 0;
}

int selected_devices(std::int32_t* ordinals, int capacity) noexcept {
  const test::TestBackend& b = test::backend();
  const int found = b.opens.load() > 0 ? b.devices_found.load() : 0;
  const int count = std::min(std::max(b.devices.load(), found), capacity);
  for (int i = 0; i < count; ++i) ordinals[i] = i;
  return count;
}

std::unique_ptr<Device> make_device(std::int32_t ordinal, Status& status) noexcept {
  test::TestBackend& b = test::backend();
  ++b.opens;
  usleep(static_cast<useconds_t>(b.open_delay_ms.load()) * 1000);
  if (b.never_opens.load() == ordinal || b.opens_to_fail.fetch_sub(1) > 0) {
    status = Status(b.open_error.load(), "test: open", 3);
    return nullptr;
  }
  return std::make_unique<test::SlowDevice>(test::make_simulated_device(test::simulation(ordinal), ordinal));
}

}  // namespace device
}  // namespace gemmhoist
