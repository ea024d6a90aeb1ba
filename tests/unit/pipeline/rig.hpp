// Rig: a simulated device, its worker and its engine, and calls through them as dispatch makes them.
#pragma once

#include <cstdint>
#include <functional>

#include "pipeline/pipeline.hpp"
#include "support/product.hpp"
#include "support/simulation.hpp"

namespace gemmhoist::test {

struct RigOptions {
  SimulationSettings simulation;
  std::int32_t host_threads = 2;
  std::int64_t pinned_bytes = 8 << 20;
  std::int64_t device_bytes = 0;
  // Of the calls. The engine is told a rate for it that leaves fp32 no chance.
  Precision precision = Precision::fp32;
};

struct CallResult {
  bool submitted = false;
  pipeline::Outcome outcome = pipeline::Outcome::partial;
  Status status;
  std::int64_t tiles = 0;
  pipeline::CallTimes times;
  std::string kernel;
  pipeline::Leftover leftover;
  int regions_left = 0;
};

class Rig {
 public:
  explicit Rig(const RigOptions& options = {});
  ~Rig();
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  Simulation& simulation() { return simulation_; }
  pipeline::Engine* engine() { return engine_; }

  // A call as dispatch makes it: what the device leaves undone is finished by the reference product.
  CallResult multiply(const GemmCall& call, std::int64_t patience_ms = 60000);
  // Runs something on the worker, and waits for it.
  void on_worker(const std::function<void(device::Device&)>& body);
  bool close_worker(std::int64_t patience_ms);

 private:
  const Precision precision_;
  Simulation simulation_;
  device::Worker* worker_ = nullptr;
  pipeline::Engine* engine_ = nullptr;
};

// Device calls of one product once memory is there; `product` is as it was afterwards.
std::int64_t calls_of(Rig& rig, Product& product);

// Each of the `calls` device calls of a product fails once and passes: that product is right, and so is the
// next one, which `next` may look at. How many of them answered an error.
std::int64_t fail_each_call_once(Rig& rig, Product& product, std::int64_t calls,
                                 const std::function<void(const CallResult& next, std::int64_t call)>& next);

}  // namespace gemmhoist::test
