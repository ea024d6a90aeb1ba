// The end of the process: products in exit handlers and static destructors, and threads that multiply while
// it goes.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "cases/blas.hpp"
#include "cases/scenario.hpp"

namespace gemmhoist::cases {
namespace {

bool g_multiply_in_destructor = false;

// Constructed before main: its destructor runs after every handler that main registers.
struct MultipliesWhenDestroyed {
  ~MultipliesWhenDestroyed() {
    if (!g_multiply_in_destructor) return;
    print_verdict(big_right());
    std::fflush(stdout);
  }
} g_static_object;

void at_exit() {
  print_verdict(big_right());
}

constexpr int kExitCode = 7;

// Prints three verdicts at most; the argument "first" leaves out the one before exit.
[[noreturn]] void leave_through_handlers() {
  (void)served_by();
  g_multiply_in_destructor = true;
  std::atexit(at_exit);  // before any product: runs after the library's own handler
  if (scenario_argument() != "first") print_verdict(big_right());
  std::atexit(at_exit);
  std::exit(kExitCode);
}
std::string exit_handlers() {
  leave_through_handlers();
}

// Detached threads are inside calls when main leaves, as the argument says: exit, quick_exit or _exit.
std::string exit_amid_calls() {
  static const test::ProductShape shape{big(), big(), big()};
  // Never destroyed: only the libraries are taken down under the threads.
  static auto& products = *new std::vector<test::Product>;
  constexpr int kThreads = 4;
  products.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) products.emplace_back(shape);
  multiply(products[0].call());
  for (int i = 0; i < kThreads; ++i) {
    std::thread([i] {
      for (;;) multiply(products[static_cast<std::size_t>(i)].call());
    }).detach();
  }
  usleep(20000);
  std::puts("leaving");
  std::fflush(stdout);
  if (scenario_argument() == "quick_exit") std::quick_exit(kExitCode);
  if (scenario_argument() == "_exit") _exit(kExitCode);
  std::exit(kExitCode);
}

// A thread other than main's ends the process, while main's waits in a call.
std::string exit_by_another_thread() {
  (void)big_right();
  std::thread([] {
    usleep(5000);
    std::exit(kExitCode);
  }).detach();
  for (;;) (void)right(test::ProductShape{33, 33, 33});
}

constexpr Scenario kScenarios[] = {
    {"exit handlers", exit_handlers},
    {"exit amid calls", exit_amid_calls},
    {"exit by another thread", exit_by_another_thread},
};

}  // namespace

std::span<const Scenario> exit_scenarios() {
  return kScenarios;
}

}  // namespace gemmhoist::cases
