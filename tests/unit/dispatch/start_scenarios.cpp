// From cold to up: what a program pays and when.
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

std::string small_calls_never_start() {
  for (int i = 0; i < 50; ++i) TRY(multiply(64));
  CHECK(state() == "cold");
  CHECK(backend().opens == 0);
  TRY(log_is("(cpu:too_small ){50}"));
  return {};
}

// Savings add up, the start goes on in the background, calls go on on the CPU meanwhile.
std::string tiers_up() {
  backend().open_delay_ms = 400;
  TRY(multiply(64));
  TRY(bring_up());
  for (int i = 0; i < 3; ++i) TRY(multiply());
  // The first two teach the CPU's rate. A start costs 0.45 s, which calls of 60 ms earn in seven or more.
  TRY(log_is(
      "cpu:too_small (cpu:cpu_faster ){2,}(cpu:gpu_cold ){6,}(cpu:gpu_starting ){3,}(gpu:gpu_faster ){3}"));
  CHECK(backend().opens == 1);
  CHECK(count(Counter::gpu_starts) == 1);
  CHECK(count(Counter::calls_gpu) == 3);
  CHECK(count(Counter::calls_rescued) == 0);
  return {};
}

std::string one_huge_call_waits() {
  backend().open_delay_ms = 200;
  for (int i = 0; i < 2; ++i) TRY(multiply(128));
  const double begin = now_s();
  TRY(multiply(448));  // 9 s at this rate
  CHECK(now_s() - begin < 5);
  TRY(log_is("(cpu:cpu_faster ){2}gpu:worth_waiting "));
  return {};
}

// A start that hangs costs a call no more than the CPU would have taken.
std::string a_start_that_hangs() {
  backend().open_delay_ms = 15'000;
  for (int i = 0; i < 2; ++i) TRY(multiply(128));
  const double begin = now_s();
  TRY(multiply(448));
  const double taken = now_s() - begin;
  CHECK(taken < 14);
  TRY(log_is("(cpu:cpu_faster ){2}cpu:gpu_starting "));
  std::quick_exit(taken < 14 ? 0 : 1);  // the start still hangs
}

std::string forced_calls_wait() {
  backend().open_delay_ms = 100;
  for (const std::int64_t n : {8, 40, 160}) TRY(multiply(n));
  TRY(log_is("(gpu:forced_gpu ){3}"));
  CHECK(backend().opens == 1);
  CHECK(count(Counter::calls_cpu) == 0);
  return {};
}

std::string threads_have_modes() {
  CHECK(!dispatch::set_thread_mode(17));
  CHECK(dispatch::set_thread_mode(GEMMHOIST_MODE_GPU));
  TRY(multiply());
  std::string other;
  std::thread([&] { other = multiply(64); }).join();  // the setting's own
  TRY(other);
  CHECK(dispatch::set_thread_mode(GEMMHOIST_MODE_CPU));
  TRY(multiply());
  CHECK(dispatch::set_thread_mode(GEMMHOIST_MODE_DEFAULT));
  TRY(multiply(64));
  TRY(log_is("gpu:forced_gpu cpu:too_small cpu:forced_cpu cpu:too_small "));
  return {};
}

std::string no_device() {
  for (int i = 0; i < 3; ++i) TRY(multiply());
  CHECK(state() == "absent");
  CHECK(backend().opens == 1);
  TRY(log_is("cpu:gpu_absent cpu:gpu_absent cpu:gpu_absent "));
  return {};
}
std::string no_device_opens() {
  backend().opens_to_fail = 100;
  backend().open_error = StatusCode::unavailable;
  return no_device();
}

// Memory that somebody else holds while we open the device: again later, and each time later still.
std::string opening_fails_twice() {
  backend().opens_to_fail = 2;
  TRY(multiply());
  CHECK(state() == "backoff");
  TRY(multiply());
  TRY(log_is("cpu:gpu_backoff cpu:gpu_backoff "));
  CHECK(backend().opens == 1);
  sleep_ms(110);
  TRY(multiply());  // the second start
  CHECK(backend().opens == 2);
  sleep_ms(110);
  CHECK(state() == "backoff");  // 0.2 s this time
  sleep_ms(110);
  TRY(multiply());
  CHECK(backend().opens == 3);
  CHECK(last_entry() == "gpu:forced_gpu");
  return {};
}

// The device opens, the engine fails: its worker stays, with the device that it has.
std::string engine_fails_once() {
  Fault fault;
  fault.fail_at = 2;  // after the pinned arena
  fault.error = StatusCode::out_of_memory;
  simulation().arm(fault);
  TRY(multiply());
  CHECK(state() == "backoff");
  sleep_ms(110);
  TRY(multiply());
  TRY(log_is("cpu:gpu_backoff gpu:forced_gpu "));
  CHECK(backend().opens == 1);
  return {};
}

// A start that failed has spent what was earned: the next has to be earned anew.
std::string failed_starts_are_earned_anew() {
  backend().opens_to_fail = 1;
  TRY(multiply_until("cpu:gpu_backoff", 10));
  sleep_ms(120);
  const std::size_t before = log_size();
  TRY(bring_up());
  TRY(log_is("(cpu:gpu_cold ){6,}(cpu:gpu_starting )*", before));
  return {};
}

std::string device_is_lost_while_measured() {
  Fault fault;
  fault.fail_at = 8;
  fault.error = StatusCode::device_lost;
  fault.stay_dead = true;
  simulation().arm(fault);
  for (int i = 0; i < 3; ++i) TRY(multiply());
  CHECK(state() == "absent");
  TRY(log_is("(cpu:gpu_absent ){3}"));
  return {};
}

// How many devices "all" means is known once the first is open.
std::string all_devices() {
  backend().devices_found = 3;
  TRY(multiply());
  for (int i = 0; i < 500 && count(Counter::gpu_starts) < 3; ++i) sleep_ms(10);
  CHECK(count(Counter::gpu_starts) == 3);
  CHECK(backend().opens == 3);
  for (int i = 0; i < 3; ++i) simulation(i).arm({});
  backend().call_delay_us = 30'000;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 3; ++j) wrong += multiply(64).empty() ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  for (int i = 0; i < 3; ++i) CHECK(simulation(i).calls() > 0);
  return {};
}

std::string one_of_two_opens() {
  backend().devices = 2;
  backend().never_opens = 0;
  backend().open_error = StatusCode::unavailable;
  for (int i = 0; i < 3; ++i) TRY(multiply());
  TRY(log_is("(gpu:forced_gpu ){3}"));
  return {};
}

// The loader's lock is ours while a constructor of a library being loaded multiplies; at a second start, too.
std::string constructor_at_second_start() {
  backend().opens_to_fail = 1;
  TRY(multiply());
  sleep_ms(150);
  const double begin = now_s();
  if (dlopen(std::getenv("GEMMHOIST_TEST_CALLS_BACK"), RTLD_NOW) == nullptr) return dlerror();
  CHECK(now_s() - begin < 5);
  TRY(log_is("cpu:gpu_backoff cpu:gpu_starting "));
  return {};
}

constexpr Scenario kScenarios[] = {
    {"small calls never start", small_calls_never_start},
    {"tiers up", tiers_up},
    {"one huge call waits", one_huge_call_waits},
    {"a start that hangs", a_start_that_hangs},
    {"forced calls wait", forced_calls_wait},
    {"threads have modes", threads_have_modes},
    {"no device opens", no_device_opens},
    {"opening fails twice", opening_fails_twice},
    {"engine fails once", engine_fails_once},
    {"failed starts are earned anew", failed_starts_are_earned_anew},
    {"device is lost while measured", device_is_lost_while_measured},
    {"all devices", all_devices},
    {"one of two opens", one_of_two_opens},
    {"constructor at second start", constructor_at_second_start},
};

}  // namespace

std::span<const Scenario> start_scenarios() {
  return kScenarios;
}

}  // namespace gemmhoist::test

// Called by the library calls_back.
extern "C" __attribute__((visibility("default"))) void multiply_in_constructor() {
  if (!gemmhoist::test::multiply().empty()) std::abort();
}
