// A GPU that fails, in every way that passes or does not, and one that disappoints.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "backend.hpp"
#include "dispatch/dispatch.hpp"
#include "gemmhoist/gemmhoist.h"
#include "scenario.hpp"

namespace gemmhoist::test {
namespace {

using observe::Counter;

Fault fault_at(std::int64_t call, StatusCode error, bool stay_dead = false) {
  Fault fault;
  fault.fail_at = call;
  fault.error = error;
  fault.stay_dead = stay_dead;
  return fault;
}

std::string in_threads(int threads, int calls, std::int64_t n = kBig) {
  std::vector<std::thread> running;
  std::vector<std::string> wrong(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      for (int j = 0; j < calls; ++j) wrong[static_cast<std::size_t>(i)] += multiply(n);
    });
  }
  for (std::thread& thread : running) thread.join();
  for (const std::string& each : wrong) TRY(each);
  return {};
}

std::string transient_failure() {
  TRY(bring_up());
  TRY(multiply());
  const std::size_t before = log_size();
  // The first rests are hardly longer than the CPU needs for such a call.
  for (int i = 0; i < 6 && last_entry() != "cpu:gpu_backoff"; ++i) {
    simulation().arm(fault_at(3, StatusCode::device_error));
    TRY(multiply());
  }
  simulation().arm({});
  CHECK(count(Counter::gpu_failures) == count(Counter::calls_rescued));
  sleep_ms(900);
  CHECK(state() == "up");
  TRY(multiply());
  TRY(log_is("(gpu.cpu:gpu_faster ){1,4}cpu:gpu_backoff gpu:gpu_faster ", before));
  return {};
}

// Another process takes the memory, and gives it back.
std::string memory_goes_and_comes_back() {
  TRY(bring_up());
  TRY(multiply());  // the device's buffers are there: a refusal while they are made is met by smaller ones
  const std::size_t before = log_size();
  // The first rests are hardly longer than the CPU needs for such a call.
  for (int i = 0; i < 8 && last_entry() != "cpu:gpu_backoff"; ++i) {
    simulation().arm(fault_at(3, StatusCode::out_of_memory));
    TRY(multiply());
  }
  simulation().arm({});
  sleep_ms(900);
  TRY(multiply());
  TRY(log_is("(gpu.cpu:gpu_faster ){1,4}cpu:gpu_backoff gpu:gpu_faster ", before));
  CHECK(count(Counter::gpu_failures) == 0);
  return {};
}

// However often memory is refused, the device is not given up.
std::string memory_never_comes_back() {
  TRY(multiply());
  for (int i = 0; i < 12; ++i) {
    simulation().arm(fault_at(3, StatusCode::out_of_memory));
    TRY(multiply());
    CHECK(last_entry() == "gpu+cpu:forced_gpu");
  }
  CHECK(state() == "backoff");
  TRY(multiply());
  CHECK(last_entry() == "gpu:forced_gpu");
  CHECK(state() == "backoff");  // asked for by name while it rests; the rest goes on
  return {};
}

std::string failures_in_a_row() {
  TRY(multiply());
  for (int i = 0; i < 8; ++i) {
    CHECK(state() != "lost");
    simulation().arm(fault_at(3, StatusCode::device_error));
    TRY(multiply());
  }
  CHECK(state() == "lost");
  TRY(multiply());
  TRY(log_is("gpu:forced_gpu (gpu.cpu:forced_gpu ){8}cpu:gpu_lost "));
  CHECK(count(Counter::gpu_failures) == 8);
  return {};
}

// Callers that were under way together meet one failure, not one each.
std::string failures_together() {
  TRY(multiply());
  backend().call_delay_us = 60'000;
  std::atomic<bool> fail{true};
  std::thread arming([&] {  // each device call fails, as long as it goes
    while (fail) {
      simulation().arm(fault_at(1, StatusCode::device_error));
      sleep_ms(1);
    }
  });
  const std::string wrong = in_threads(8, 1);
  fail = false;
  arming.join();
  simulation().arm({});
  TRY(wrong);
  CHECK(count(Counter::calls_rescued) == 8);
  // Had each of them counted, the device would be lost.
  CHECK(count(Counter::gpu_failures) == 1);
  sleep_ms(150);
  CHECK(state() == "up");
  return {};
}

std::string success_forgets_failures() {
  TRY(multiply());
  for (int i = 0; i < 12; ++i) {
    simulation().arm(fault_at(3, StatusCode::device_error));
    TRY(multiply());
    TRY(multiply());
  }
  CHECK(state() != "lost");
  CHECK(count(Counter::gpu_failures) == 12);
  return {};
}

std::string device_is_lost() {
  TRY(bring_up());
  simulation().arm(fault_at(3, StatusCode::device_lost, true));
  const std::size_t before = log_size();
  for (int i = 0; i < 3; ++i) TRY(multiply());
  CHECK(state() == "lost");
  TRY(log_is("gpu.cpu:gpu_faster (cpu:gpu_lost ){2}", before));
  CHECK(count(Counter::gpu_failures) == 1);
  return {};
}

// One of three devices is lost, and itself alone.
std::string one_device_of_three_is_lost() {
  backend().devices = 3;
  TRY(multiply());
  for (int i = 0; i < 500 && count(Counter::gpu_starts) < 3; ++i) sleep_ms(10);
  simulation(0).arm(fault_at(1, StatusCode::device_lost, true));
  TRY(multiply());
  for (int i = 0; i < 4; ++i) TRY(multiply());
  CHECK(state() == "up");
  TRY(log_is("gpu:forced_gpu gpu.cpu:forced_gpu (gpu:forced_gpu ){4}"));
  simulation(1).arm(fault_at(1, StatusCode::device_error));
  TRY(multiply());
  CHECK(state() == "up");  // the third
  TRY(multiply());
  CHECK(last_entry() == "gpu:forced_gpu");
  simulation(1).arm(fault_at(1, StatusCode::device_lost, true));
  simulation(2).arm(fault_at(1, StatusCode::device_lost, true));
  for (int i = 0; i < 3; ++i) TRY(multiply());
  CHECK(state() == "lost");
  CHECK(last_entry() == "cpu:gpu_lost");
  return {};
}

// The deadline passes, the worker comes back (a process that was stopped, a driver that recovered).
std::string hang_that_passes() {
  TRY(multiply());
  Fault fault;
  fault.hang_at = 3;
  simulation().arm(fault);
  double begin = now_s();
  TRY(multiply());
  CHECK(now_s() - begin < 3);
  CHECK(state() == "backoff");
  begin = now_s();
  TRY(multiply());  // not behind the one that hangs, though asked for by name
  CHECK(now_s() - begin < 0.4);
  CHECK(last_entry() == "cpu:gpu_backoff");
  simulation().release();
  sleep_ms(200);
  TRY(multiply());
  TRY(log_is("gpu:forced_gpu gpu.cpu:forced_gpu cpu:gpu_backoff gpu:forced_gpu "));
  return {};
}

std::string hang_for_good() {
  TRY(multiply());
  Fault fault;
  fault.hang_at = 3;
  simulation().arm(fault);
  TRY(multiply());
  CHECK(state() == "backoff");
  sleep_ms(5100);
  CHECK(state() == "lost");
  const double begin = now_s();
  TRY(multiply());
  CHECK(now_s() - begin < 0.4);
  TRY(log_is("gpu:forced_gpu gpu.cpu:forced_gpu cpu:gpu_lost "));
  CHECK(count(Counter::gpu_failures) == 1);
  return {};
}

// Callers behind the one that hangs are freed by their own deadlines.
std::string many_callers_of_a_hanging_device() {
  TRY(multiply());
  Fault fault;
  fault.hang_at = 3;
  simulation().arm(fault);
  const double begin = now_s();
  TRY(in_threads(6, 2));
  CHECK(now_s() - begin < 5);
  CHECK(count(Counter::gpu_failures) == 1);
  CHECK(state() == "backoff");
  return {};
}

// Slower than it was estimated, slower than the CPU: calls go back after a few.
std::string gpu_that_disappoints() {
  backend().call_delay_us = 9'000;  // measured, hence expected
  TRY(bring_up());
  for (int i = 0; i < 3; ++i) TRY(multiply());
  CHECK(last_entry() == "gpu:gpu_faster");
  backend().call_delay_us = 90'000;  // the CPU needs 60
  const std::size_t before = log_size();
  for (int i = 0; i < 12; ++i) TRY(multiply());
  // From then on a call now and then tries whether it has got better: a tenth of them at most, half as long
  // again as on the CPU.
  const std::size_t settled = log_size();
  for (int i = 0; i < 40; ++i) TRY(multiply());
  TRY(log_is("(gpu:gpu_faster ){1,8}.*", before));
  TRY(log_is("((cpu:cpu_faster )*gpu:gpu_faster ){0,4}(cpu:cpu_faster )*", settled));
  return {};
}

// The CPU was busy with others while its rate was learnt, and the GPU has served this size since. Looking
// again costs a hundredth of the time at most, and finds that the CPU is the faster one.
std::string cpu_that_was_busy() {
  backend().call_delay_us = 15'000;
  TRY(bring_up());
  TRY(multiply_until("gpu:gpu_faster", 20));
  void* blas = dlopen(std::getenv("GEMMHOIST_FALLBACK"), RTLD_NOW | RTLD_NOLOAD);
  CHECK(blas != nullptr);
  const auto set_rate = reinterpret_cast<void (*)(double)>(dlsym(blas, "slow_blas_set_rate"));
  CHECK(set_rate != nullptr);
  set_rate(0);  // some ms instead of 30
  const std::size_t before = log_size();
  for (int i = 0; i < 20; ++i) TRY(multiply());
  TRY(log_is("(gpu:gpu_faster ){20}", before));  // not yet
  TRY(multiply_until("cpu:cpu_looked_at", 20));
  const std::size_t looked = log_size();
  for (int i = 0; i < 3; ++i) TRY(multiply());
  TRY(log_is("(cpu:cpu_faster ){3}", looked));
  return {};
}

// The same where calls always find others before them.
std::string gpu_that_disappoints_several() {
  backend().call_delay_us = 9'000;
  TRY(bring_up());
  TRY(in_threads(3, 4));
  backend().call_delay_us = 70'000;
  TRY(in_threads(3, 25));
  const std::size_t before = log_size();
  TRY(in_threads(3, 6));
  TRY(log_is("((cpu:cpu_faster |cpu:gpu_busy )*gpu:gpu_faster ){0,2}(cpu:cpu_faster |cpu:gpu_busy )*",
             before));
  return {};
}

std::string queue_of_callers() {
  TRY(bring_up());
  const std::size_t before = log_size();
  TRY(in_threads(8, 6));
  TRY(log_is("(gpu:gpu_faster |cpu:gpu_busy |cpu:cpu_faster ){48}", before));
  CHECK(count(Counter::calls_rescued) == 0);
  CHECK(static_cast<long>(log_size()) == count(Counter::calls_gpu) + count(Counter::calls_cpu));
  TRY(multiply_until("gpu:gpu_faster", 5));  // nothing is left in the queue's account
  return {};
}

constexpr Scenario kScenarios[] = {
    {"cpu that was busy", cpu_that_was_busy},
    {"transient failure", transient_failure},
    {"memory goes and comes back", memory_goes_and_comes_back},
    {"memory never comes back", memory_never_comes_back},
    {"failures in a row", failures_in_a_row},
    {"failures together", failures_together},
    {"success forgets failures", success_forgets_failures},
    {"device is lost", device_is_lost},
    {"one device of three is lost", one_device_of_three_is_lost},
    {"hang that passes", hang_that_passes},
    {"hang for good", hang_for_good},
    {"many callers of a hanging device", many_callers_of_a_hanging_device},
    {"gpu that disappoints", gpu_that_disappoints},
    {"gpu that disappoints several", gpu_that_disappoints_several},
    {"queue of callers", queue_of_callers},
};

}  // namespace

std::span<const Scenario> failure_scenarios() {
  return kScenarios;
}

}  // namespace gemmhoist::test
