// Faults of the simulated device, which reads its switches when it is first used: each child sets its own.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "cases/blas.hpp"
#include "cases/scenario.hpp"

namespace gemmhoist::cases {
namespace {

using test::ProductShape;

// Two calls; the fault is in the start, in either, or beyond both.
std::string two_products() {
  for (const Transpose trans : kTransposes) {
    ProductShape shape{90, 75, 50, trans, Transpose::no};
    shape.pad_c = 1;
    shape.beta = 0.5F;
    if (auto wrong = right(shape); !wrong.empty()) return wrong;
  }
  return {};
}

// Forks a child for every k: "<last k> <error> <stay dead>". Silent children are right ones. The start is
// mostly measuring, by hundreds of calls of a few kinds: of those, a sample; of the products', each.
std::string every_device_call_fails() {
  std::istringstream words{std::string(scenario_argument())};
  int last = 0;
  std::string error, stay_dead;
  words >> last >> error >> stay_dead;
  setenv("GEMMHOIST_SIM_ERROR", error.c_str(), 1);
  setenv("GEMMHOIST_SIM_STAY_DEAD", stay_dead.c_str(), 1);
  constexpr int kOfProducts = 120, kSamples = 60;
  const int step = std::max(1, (last - kOfProducts) / kSamples);
  int children = 0, children_with_rescue = 0;
  for (int k = 1; k <= last; k += k < last - kOfProducts ? step : 1) {
    ++children;
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      setenv("GEMMHOIST_SIM_FAIL_AT", std::to_string(k).c_str(), 1);
      const std::string wrong = two_products();
      if (!wrong.empty()) std::printf("k = %d: %s\n", k, wrong.c_str());
      std::fflush(stdout);
      _exit(!wrong.empty() ? 1 : counter("calls_rescued") + counter("calls_cpu") > 0 ? 2 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == 2) ++children_with_rescue;
    if (code != 0 && code != 2) return "wrong at k = " + std::to_string(k);
  }
  // Some faults are absorbed (a probe that may fail, memory asked for again in smaller pieces); most are not.
  if (children_with_rescue < children / 10) {
    return "only " + std::to_string(children_with_rescue) + " faults of " + std::to_string(children) +
           " struck";
  }
  return {};
}

// The device hangs in this call: it is finished in time all the same, and so are later ones.
std::string device_hangs() {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 4; ++i) {
    if (auto wrong = two_products(); !wrong.empty()) return wrong;
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  if (taken.count() > 10) return "it took " + std::to_string(taken.count()) + " s";
  return counter("calls_rescued") > 0 ? "" : "no call was rescued";
}

constexpr Scenario kScenarios[] = {
    {"two products", two_products},
    {"every device call fails", every_device_call_fails},
    {"device hangs", device_hangs},
};

}  // namespace

std::span<const Scenario> fault_scenarios() {
  return kScenarios;
}

}  // namespace gemmhoist::cases
