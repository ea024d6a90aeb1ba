#include "cases/scenario.hpp"

#include <cstdio>

#include "cases/blas.hpp"

namespace gemmhoist::cases {
namespace {

std::string_view g_argument;

const Scenario* find(std::string_view name) {
  for (const auto& table :
       {special_value_scenarios(), shape_scenarios(), accuracy_scenarios(), span_scenarios(),
        argument_scenarios(), thread_scenarios(), process_scenarios(), exit_scenarios(),
        host_state_scenarios(), fault_scenarios(), memory_scenarios(), cuda_scenarios()}) {
    for (const Scenario& scenario : table) {
      if (scenario.name == name) return &scenario;
    }
  }
  return nullptr;
}

}  // namespace

std::string_view scenario_argument() {
  return g_argument;
}

void print_verdict(const std::string& wrong) {
  std::puts(wrong.empty() ? "right" : wrong.c_str());
}

void print_counters() {
  const Library& library = served_by();
  if (library.stat == nullptr) return;
  for (std::size_t i = 0; const char* name = library.stat_name(i); ++i) {
    if (const std::uint64_t value = counter(name); value != 0) {
      std::printf("%s %llu\n", name, static_cast<unsigned long long>(value));
    }
  }
  std::printf("state: %s\n", library.gpu_state());
}

int run_scenario(std::string_view name, std::string_view argument) {
  const Scenario* scenario = find(name);
  if (scenario == nullptr) {
    std::printf("no scenario %.*s\n", static_cast<int>(name.size()), name.data());
    return 2;
  }
  g_argument = argument;
  const std::string wrong = scenario->run();
  print_verdict(wrong);
  print_counters();
  std::fflush(stdout);
  return wrong.empty() ? 0 : 1;
}

}  // namespace gemmhoist::cases
