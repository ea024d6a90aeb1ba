// Simulation: what a test sets and asks of a simulated device: its size, its faults, its virtual clock.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/status.hpp"
#include "device/device.hpp"

namespace gemmhoist::test {

// Which call to the device goes wrong, counted from arm(). Every method that answers a Status counts.
struct Fault {
  std::int64_t fail_at = 0;  // 1: the next call; 0: none
  StatusCode error = StatusCode::device_error;
  bool stay_dead = false;    // all calls after it answer device_lost
  std::int64_t hang_at = 0;  // this call returns only after release(); 0: none
};

enum class TileSizes : std::uint8_t {
  small,  // small matrices then exercise many panels and tiles
  real,   // as the shipped kernels, for makespans
};

struct SimulationSettings {
  std::int64_t memory_bytes = std::int64_t{512} << 20;
  TileSizes tiles = TileSizes::small;
  std::int32_t sm_count = 4;
  // The virtual clock's rates: those of the model in the measurements.
  double link_latency_s = 8e-6;
  double link_bytes_per_s = 50e9;     // each direction, both at once
  double kernel_flops_per_s = 50e12;  // all SMs
  double image_speedup = 2.2;         // products of images, over that
  double launch_s = 3e-6;
  // Of a product in fp32, beside its own time on this machine: whoever measures then finds images faster.
  double fp32_pause_s = 0;
  bool arithmetic =
      true;  // false: kernels leave C as it is, for makespans of sizes that the host cannot compute
};

class VirtualClock;

// Outlives the devices made with it. All methods from any thread.
class Simulation {
 public:
  explicit Simulation(const SimulationSettings& settings = {});
  ~Simulation();

  const SimulationSettings settings;

  void arm(const Fault& fault);
  std::int64_t calls() const;  // since arm()
  void release();              // lets a hanging call, and stalled streams, go on
  bool hanging() const;        // a call is inside its hang
  void stall();                // streams execute nothing more until release()

  // Memory of the "program" that is not pageable.
  void declare(const void* memory, std::size_t bytes, device::HostMemory kind);
  void forget_declared();
  // Less free memory than the device has: taken by another process.
  void take_memory(std::int64_t bytes);

  void reset_clock();
  double makespan();  // of everything queued since reset_clock, in virtual seconds

  // --- the device's side ---
  Status enter_call();   // counts, fails or hangs
  Status alive() const;  // for calls that do not count
  bool stalled() const;
  device::HostMemory kind_of(const void* memory, std::size_t bytes) const;
  std::int64_t taken_memory() const;
  VirtualClock& clock() { return *clock_; }

 private:
  struct Declared {
    std::uintptr_t begin, end;
    device::HostMemory kind;
  };

  mutable std::mutex mutex_;
  std::condition_variable released_;
  Fault fault_;
  std::int64_t calls_ = 0;
  std::uint64_t release_count_ = 0;
  bool dead_ = false, hanging_ = false, stalled_ = false;
  std::int64_t taken_ = 0;
  std::vector<Declared> declared_;
  std::unique_ptr<VirtualClock> clock_;
};

// The device, on this machine's memory and threads.
std::unique_ptr<device::Device> make_simulated_device(Simulation& simulation, std::int32_t ordinal);

// A worker's factory for the simulation that was set last (a factory is a plain function).
void set_simulation(Simulation* simulation);
std::unique_ptr<device::Device> simulated_factory(std::int32_t ordinal, Status& status) noexcept;

}  // namespace gemmhoist::test
