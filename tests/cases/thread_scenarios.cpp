// Threads: many with private data, tiny stacks, cancellation.
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cases/blas.hpp"
#include "cases/scenario.hpp"

namespace gemmhoist::cases {
namespace {

using test::Product;
using test::ProductShape;

// 32 threads, 200 calls each: every result is looked at. Sizes run from tiny to BIG's region.
std::string many_threads() {
  constexpr int kThreads = 32, kCalls = 200;
  const std::int64_t most = std::min<std::int64_t>(big(), 250);
  std::mutex mutex;
  std::string first_wrong;
  const auto work = [&](int t) {
    for (int call = 0; call < kCalls; ++call) {
      const int mixed = t * kCalls + call;
      ProductShape shape;
      // Every 50th is a large one, so that both sides are met at the same time.
      const std::int64_t scale = call % 50 == 0 ? most : 40;
      shape.m = 1 + mixed * 37 % scale;
      shape.n = 1 + mixed * 53 % scale;
      shape.k = 1 + mixed * 71 % scale;
      shape.trans_a = kTransposes[call % 2];
      shape.trans_b = kTransposes[call / 2 % 2];
      shape.pad_c = call % 3;
      shape.beta = call % 4 == 0 ? 0.5F : 0;
      const std::string wrong = right(shape, kOrders[call / 4 % 2], static_cast<std::uint32_t>(mixed + 1));
      if (wrong.empty()) continue;
      const std::lock_guard lock(mutex);
      if (first_wrong.empty()) first_wrong = wrong;
      return;
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  if (first_wrong.empty() && served_by().stat != nullptr &&
      counter("calls_cblas") != static_cast<std::uint64_t>(kThreads * kCalls)) {
    return "calls were miscounted";
  }
  return first_wrong;
}

// The same calls on a thread with a stack of `bytes`; what needs stack itself (making and checking the
// product) stays on this one. Answers whether the thread could be made.
bool on_small_stack(std::size_t bytes, const GemmCall& call) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_t thread;
  const bool made = pthread_attr_setstacksize(&attributes, bytes) == 0 &&
                    pthread_create(
                        &thread, &attributes,
                        [](void* argument) -> void* {
                          multiply(*static_cast<const GemmCall*>(argument));
                          return nullptr;
                        },
                        const_cast<GemmCall*>(&call)) == 0;
  pthread_attr_destroy(&attributes);
  if (made) pthread_join(thread, nullptr);
  return made;
}

// The first product of the process is on the small thread. The argument is the stack's size in KiB.
std::string small_stack() {
  const auto bytes = std::strtoul(std::string(scenario_argument()).c_str(), nullptr, 10) << 10;
  (void)served_by();
  for (const float beta : {0.0F, 0.5F}) {
    ProductShape shape{big(), big() - 1, big() / 2};
    shape.beta = beta;
    const Product product(shape);
    if (!on_small_stack(bytes, product.call())) return "no thread with such a stack";
    if (auto wrong = product.check(); !wrong.empty()) return wrong;
  }
  return {};
}

// Calls in a row on a thread that is cancelled while it waits for one: C is whole whenever it ends, the
// cancellation is acted on after the call, and others go on.
struct Cancelled {
  Product product;
  std::atomic<int> begun{0}, ended{0};
  explicit Cancelled(const ProductShape& shape) : product(shape) {}
};

void* call_until_cancelled(void* argument) {
  auto& state = *static_cast<Cancelled*>(argument);
  for (;;) {
    ++state.begun;
    multiply(state.product.call());
    ++state.ended;
    pthread_testcancel();
  }
}

std::string cancelled_while_waiting() {
  if (auto wrong = big_right(); !wrong.empty()) return wrong;
  for (int round = 0; round < 10; ++round) {
    Cancelled state(ProductShape{big(), big(), big()});
    pthread_t thread;
    if (pthread_create(&thread, nullptr, call_until_cancelled, &state) != 0) return "no thread";
    while (state.begun == 0) std::this_thread::yield();
    usleep(static_cast<useconds_t>(300 * round));
    pthread_cancel(thread);
    void* end = nullptr;
    pthread_join(thread, &end);
    if (end != PTHREAD_CANCELED) return "the thread was not cancelled";
    if (state.begun != state.ended) return "a call was left by cancellation";
    if (auto wrong = state.product.check(); !wrong.empty()) return wrong;
    if (auto wrong = big_right(); !wrong.empty()) return "after a cancellation: " + wrong;
  }
  return {};
}

// Threads that end after one call each, by the hundred: nothing may be kept for each of them.
std::string short_lived_threads() {
  std::string wrong;
  for (int i = 0; i < 200 && wrong.empty(); ++i) {
    std::thread([&] { wrong = right(ProductShape{33, 17, 9}); }).join();
  }
  return wrong;
}

// Small products go by unexamined until a thread wants the GPU for everything: its own, however small, go
// there from then on, those of other threads do not, and each is counted once.
std::string small_products_of_a_thread_on_the_gpu() {
  constexpr int kBefore = 20, kThere = 3, kBeside = 5;
  const ProductShape small{17, 16, 15};
  std::string wrong;
  const auto some = [&](int times) {
    for (int i = 0; i < times && wrong.empty(); ++i) wrong = right(small, kOrders[i % 2]);
  };
  some(kBefore);
  constexpr int kDefault = 0, kGpu = 3;  // GEMMHOIST_MODE_*
  if (served_by().set_thread_mode(kGpu) != 0) return "no such mode";
  some(kThere);
  std::thread([&] { some(kBeside); }).join();
  (void)served_by().set_thread_mode(kDefault);
  some(kBeside);
  if (!wrong.empty()) return wrong;
  if (counter("calls_cpu") != kBefore + 2 * kBeside) return "miscounted on the CPU";
  if (counter("calls_gpu") != kThere) return "miscounted on the GPU";
  return counter("calls_cblas") == kBefore + kThere + 2 * kBeside ? "" : "miscounted";
}

constexpr Scenario kScenarios[] = {
    {"many threads", many_threads},
    {"small stack", small_stack},
    {"cancelled while waiting", cancelled_while_waiting},
    {"short-lived threads", short_lived_threads},
    {"small products of a thread on the GPU", small_products_of_a_thread_on_the_gpu},
};

}  // namespace

std::span<const Scenario> thread_scenarios() {
  return kScenarios;
}

}  // namespace gemmhoist::cases
