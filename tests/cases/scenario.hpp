// Scenario: what a process does while the library serves it. The test binary runs itself again, preloaded,
// with the scenario's name; it prints "right" or what is wrong first, then the library's counters.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gemmhoist::cases {

struct Scenario {
  std::string_view name;
  std::string (*run)();  // empty: right; else what is wrong
};

// One table a file of scenarios.
std::span<const Scenario> special_value_scenarios();
std::span<const Scenario> shape_scenarios();
std::span<const Scenario> accuracy_scenarios();
std::span<const Scenario> span_scenarios();
std::span<const Scenario> argument_scenarios();
std::span<const Scenario> thread_scenarios();
std::span<const Scenario> process_scenarios();
std::span<const Scenario> exit_scenarios();
std::span<const Scenario> host_state_scenarios();
std::span<const Scenario> fault_scenarios();
std::span<const Scenario> memory_scenarios();
std::span<const Scenario> cuda_scenarios();

// The word after the scenario's name on the command line; empty where there is none.
std::string_view scenario_argument();

// Runs a scenario by name; the process' exit code.
int run_scenario(std::string_view name, std::string_view argument);
// What run_scenario prints at the end; for scenarios that end the process themselves.
void print_verdict(const std::string& wrong);
void print_counters();

}  // namespace gemmhoist::cases
