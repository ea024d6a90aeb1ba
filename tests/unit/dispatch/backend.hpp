// The backend of the dispatch tests: simulated devices whose opening, number, speed and faults a scenario
// sets while they are in use.
#pragma once

#include <atomic>

#include "core/status.hpp"
#include "support/simulation.hpp"

namespace gemmhoist::test {

struct TestBackend {
  std::atomic<int> devices{1};        // in sight before a driver is loaded
  std::atomic<int> devices_found{0};  // once one was opened; 0: no more than before
  std::atomic<int> open_delay_ms{0};
  std::atomic<int> opens{0};
  std::atomic<int> opens_to_fail{0};  // the next so many
  std::atomic<int> never_opens{-1};   // this ordinal
  std::atomic<StatusCode> open_error{StatusCode::out_of_memory};
  std::atomic<int> call_delay_us{0};  // added to each call by whatever device, on its worker
};

TestBackend& backend();
Simulation& simulation(int ordinal = 0);

}  // namespace gemmhoist::test
