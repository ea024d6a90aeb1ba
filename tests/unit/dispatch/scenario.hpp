// A scenario runs in a process of its own: options are read once, and the life of the GPU is the process'.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "observe/counters.hpp"

namespace gemmhoist::test {

struct Scenario {
  const char* name;
  std::string (*play)();  // what is wrong; empty: nothing
};

std::span<const Scenario> start_scenarios();
std::span<const Scenario> failure_scenarios();
std::span<const Scenario> life_scenarios();

// --- for scenarios ---

inline constexpr std::int64_t kBig = 160;  // 8 Mflop: 60 ms at the slow BLAS' rate, some ms on the device

// A product of n x n x n served as an exported spelling would: what is wrong with C, if anything.
std::string multiply(std::int64_t n = kBig, float beta = 0.5F);
// Multiplies until the GPU is up; "" then.
std::string bring_up();
// Repeats multiply() until the last call's entry in the log is `wanted`, or `seconds` have passed.
std::string multiply_until(std::string_view wanted, double seconds);

std::string state();
long count(observe::Counter counter);
void sleep_ms(int milliseconds);
double now_s();

// The calls so far, as the decision log has them: "cpu:gpu_cold gpu:gpu_faster ".
std::string log_text();
std::string last_entry();
// Empty where the whole log (from the `skip`-th entry on) matches the pattern.
std::string log_is(const std::string& pattern, std::size_t skip = 0);
std::size_t log_size();

// What is right but came otherwise begins with "otherwise: "; a wrong product does not.
#define TRY(expression)                                                            \
  do {                                                                             \
    if (std::string wrong_ = (expression); !wrong_.empty())                        \
      return wrong_ + " (" #expression ", line " + std::to_string(__LINE__) + ")"; \
  } while (false)
#define CHECK(condition)                                                                                 \
  do {                                                                                                   \
    if (!(condition))                                                                                    \
      return std::string("otherwise: not so: " #condition ", line ") + std::to_string(__LINE__) + "; " + \
             log_text();                                                                                 \
  } while (false)

}  // namespace gemmhoist::test
