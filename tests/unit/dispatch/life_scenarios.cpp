// fork, exit and stacks.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "backend.hpp"
#include "core/gemm_call.hpp"
#include "dispatch/dispatch.hpp"
#include "fallback/fallback.hpp"
#include "scenario.hpp"
#include "support/product.hpp"

namespace gemmhoist::test {
namespace {

using observe::Counter;

// The child's verdict on one product; `hooked`: fork's handler ran.
std::string in_child(bool hooked) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    if (hooked) dispatch::on_fork_child();
    const std::string wrong = multiply();
    if (!wrong.empty()) std::fprintf(stderr, "child: %s\n", wrong.c_str());
    std::fflush(stderr);
    _exit(wrong.empty() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0 ? "" : "the child ended with " + std::to_string(status);
}

std::string fork_while_up() {
  TRY(multiply());
  for (const bool hooked : {true, false}) {
    TRY(in_child(hooked));
    CHECK(last_entry() == "cpu:in_fork_child");
  }
  TRY(multiply());
  CHECK(last_entry() == "gpu:forced_gpu");
  return {};
}

std::string fork_while_starting() {
  backend().open_delay_ms = 300;
  std::string first;
  std::thread caller([&] { first = multiply(); });
  while (backend().opens == 0) sleep_ms(1);
  for (const bool hooked : {true, false}) {
    TRY(in_child(hooked));
    CHECK(last_entry() == "cpu:in_fork_child");
  }
  caller.join();
  TRY(first);
  CHECK(state() == "up");
  return {};
}

std::string fork_while_cold() {
  TRY(in_child(true));
  TRY(log_is("gpu:forced_gpu "));
  TRY(multiply());
  TRY(log_is("gpu:forced_gpu gpu:forced_gpu "));
  return {};
}

// What the parent's failed start has initialised is of no use to a child.
std::string fork_after_a_failed_start() {
  backend().opens_to_fail = 1;
  TRY(multiply());
  sleep_ms(150);
  CHECK(state() == "cold");
  for (const bool hooked : {true, false}) {
    TRY(in_child(hooked));
    CHECK(last_entry() != "gpu:forced_gpu");
  }
  TRY(multiply());
  CHECK(last_entry() == "gpu:forced_gpu");
  return {};
}

// The handler registered first runs last: after ours.
void multiply_after_close() {
  const std::string wrong = multiply();
  // Not the last entry: other threads may still finish theirs.
  const bool on_cpu = log_text().find("cpu:gpu_lost") != std::string::npos;
  std::printf("%s\n", !wrong.empty() ? wrong.c_str() : on_cpu ? "cpu:gpu_lost" : log_text().c_str());
  std::fflush(stdout);
}

std::string exit_while_up() {
  std::atexit(multiply_after_close);
  return multiply();
}

std::string exit_while_starting() {
  std::atexit(multiply_after_close);
  backend().open_delay_ms = 300;
  std::thread([] { (void)multiply(); }).detach();
  while (backend().opens == 0) sleep_ms(1);
  return {};
}

std::string exit_while_callers_wait() {
  std::atexit(multiply_after_close);
  TRY(multiply());
  backend().call_delay_us = 300'000;
  for (int i = 0; i < 4; ++i) std::thread([] { (void)multiply(); }).detach();
  sleep_ms(100);
  return {};
}

// A destructor that joins a thread which waits for the start.
std::string exit_joins_a_waiting_caller() {
  backend().open_delay_ms = 300;
  static std::thread caller([] { (void)multiply(); });
  while (backend().opens == 0) sleep_ms(1);
  std::atexit([] { caller.join(); });
  return {};
}

std::string exit_while_it_hangs() {
  TRY(multiply());
  Fault fault;
  fault.hang_at = 3;
  simulation().arm(fault);
  return multiply();
}

// --- the caller's stack ---

constexpr std::size_t kStack = std::size_t{256} << 10;
constexpr unsigned char kPaint = 0xa5;

struct OnStack {
  const fallback::Provider* provider;
  GemmCall call;
  bool on_gpu = false;
};

void* serve_alone(void* argument) {
  auto& on = *static_cast<OnStack*>(argument);
  dispatch::CpuTicket ticket;
  on.on_gpu = dispatch::serve(fallback::Spelling::cblas_sgemm, *on.provider, on.call, ticket);
  return nullptr;
}
void* nothing(void*) {
  return nullptr;
}

// Bytes of its stack that a thread which runs `body` has touched.
std::size_t touched(void* (*body)(void*), void* argument) {
  void* stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(stack, kPaint, kStack);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, kStack);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, body, argument) != 0) std::abort();
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  std::size_t untouched = 0;
  while (untouched < kStack && static_cast<unsigned char*>(stack)[untouched] == kPaint) ++untouched;
  munmap(stack, kStack);
  return kStack - untouched;
}

std::string stack_of_a_caller() {
  TRY(multiply(96));
  ProductShape shape{96, 96, 96, Transpose::yes, Transpose::no};
  shape.beta = 0.5F;
  Product product(shape);
  OnStack on{&fallback::provider(fallback::Spelling::cblas_sgemm), product.call()};
  const std::size_t bare = touched(nothing, nullptr);
  std::size_t most = 0;
  for (int i = 0; i < 20; ++i) {  // the deepest path (a wait that helps with a copy) is not each call's
    product.restore_c();
    most = std::max(most, touched(serve_alone, &on));
    CHECK(on.on_gpu);
    TRY(product.check());
  }
  std::printf("stack %zu\n", most - bare);
  return {};
}

// The same where the device is lost in the midst: its line on stderr, and the rest by the CPU.
std::string stack_of_a_rescued_caller() {
  TRY(multiply(96));
  Product product({96, 96, 96});
  OnStack on{&fallback::provider(fallback::Spelling::cblas_sgemm), product.call()};
  const std::size_t bare = touched(nothing, nullptr);
  Fault fault;
  fault.fail_at = 12;
  fault.error = StatusCode::device_lost;
  fault.stay_dead = true;
  simulation().arm(fault);
  const std::size_t most = touched(serve_alone, &on);
  TRY(product.check());
  CHECK(last_entry() == "gpu+cpu:forced_gpu");
  std::printf("stack %zu\n", most - bare);
  return {};
}

// --- the profile ---

std::string learns_and_measures() {
  TRY(bring_up());
  return {};
}
std::string knows_from_the_first_call() {
  TRY(multiply());
  TRY(log_is("cpu:gpu_cold "));
  return {};
}
std::string learns_nothing() {
  return multiply(8);
}

constexpr Scenario kScenarios[] = {
    {"fork while up", fork_while_up},
    {"fork while starting", fork_while_starting},
    {"fork while cold", fork_while_cold},
    {"fork after a failed start", fork_after_a_failed_start},
    {"exit while up", exit_while_up},
    {"exit while starting", exit_while_starting},
    {"exit while callers wait", exit_while_callers_wait},
    {"exit joins a waiting caller", exit_joins_a_waiting_caller},
    {"exit while it hangs", exit_while_it_hangs},
    {"stack of a caller", stack_of_a_caller},
    {"stack of a rescued caller", stack_of_a_rescued_caller},
    {"learns and measures", learns_and_measures},
    {"knows from the first call", knows_from_the_first_call},
    {"learns nothing", learns_nothing},
};

}  // namespace

std::span<const Scenario> life_scenarios() {
  return kScenarios;
}

}  // namespace gemmhoist::test
