#include "support/simulation.hpp"

#include <algorithm>

#include "support/sim_kernels.hpp"
#include "support/virtual_clock.hpp"

namespace gemmhoist::test {

Simulation::Simulation(const SimulationSettings& wanted)
    : settings(wanted), clock_(std::make_unique<VirtualClock>(sim_slots(wanted), wanted.launch_s)) {}

Simulation::~Simulation() = default;

void Simulation::arm(const Fault& fault) {
  std::lock_guard lock(mutex_);
  fault_ = fault;
  calls_ = 0;
  dead_ = false;
}

std::int64_t Simulation::calls() const {
  std::lock_guard lock(mutex_);
  return calls_;
}

void Simulation::release() {
  std::lock_guard lock(mutex_);
  ++release_count_;
  stalled_ = false;
  released_.notify_all();
}

bool Simulation::hanging() const {
  std::lock_guard lock(mutex_);
  return hanging_;
}

void Simulation::stall() {
  std::lock_guard lock(mutex_);
  stalled_ = true;
}

bool Simulation::stalled() const {
  std::lock_guard lock(mutex_);
  return stalled_;
}

void Simulation::declare(const void* memory, std::size_t bytes, device::HostMemory kind) {
  std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  declared_.push_back({begin, begin + bytes, kind});
}

void Simulation::forget_declared() {
  std::lock_guard lock(mutex_);
  declared_.clear();
}

device::HostMemory Simulation::kind_of(const void* memory, std::size_t bytes) const {
  std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  for (const Declared& range : declared_) {
    if (begin >= range.begin && begin + bytes <= range.end) return range.kind;
  }
  return device::HostMemory::pageable;
}

void Simulation::take_memory(std::int64_t bytes) {
  std::lock_guard lock(mutex_);
  taken_ = bytes;
}

std::int64_t Simulation::taken_memory() const {
  std::lock_guard lock(mutex_);
  return taken_;
}

void Simulation::reset_clock() {
  clock_->reset();
}
double Simulation::makespan() {
  return clock_->makespan();
}

Status Simulation::enter_call() {
  std::unique_lock lock(mutex_);
  const std::int64_t call = ++calls_;
  if (dead_) return Status(StatusCode::device_lost, "simulated: dead", 2);
  if (call == fault_.hang_at) {
    hanging_ = true;
    const std::uint64_t before = release_count_;
    released_.wait(lock, [&] { return release_count_ != before; });
    hanging_ = false;
  }
  if (call == fault_.fail_at) {
    dead_ = fault_.stay_dead;
    return Status(fault_.error, "simulated fault", 1);
  }
  return {};
}

Status Simulation::alive() const {
  std::lock_guard lock(mutex_);
  return dead_ ? Status(StatusCode::device_lost, "simulated: dead", 2) : Status();
}

}  // namespace gemmhoist::test
