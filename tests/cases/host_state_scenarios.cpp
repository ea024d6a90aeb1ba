// What belongs to the host and stays as it is: errno, signal masks, whose thread takes a signal, the
// floating-point environment, stdout.
#include <pthread.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cfenv>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "cases/blas.hpp"
#include "cases/scenario.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace gemmhoist::cases {
namespace {

using test::Product;
using test::ProductShape;

// First calls of the process included: those load libraries and start threads.
std::string errno_kept() {
  for (int i = 0; i < 5; ++i) {
    const Product small(ProductShape{8, 8, 8}), large(ProductShape{big(), big(), big()});
    for (const Product* product : {&small, &large}) {
      errno = 77;
      multiply(product->call());
      if (errno != 77) return "errno became " + std::to_string(errno);
      if (auto wrong = product->check(); !wrong.empty()) return wrong;
    }
  }
  return {};
}

bool same(const sigset_t& x, const sigset_t& y) {
  for (int signal = 1; signal < 64; ++signal) {
    if (sigismember(&x, signal) != sigismember(&y, signal)) return false;
  }
  return true;
}

volatile sig_atomic_t g_taken = 0;

// All of the host's threads block a signal: it stays pending, since none of ours may take it.
std::string signals_are_the_hosts() {
  struct sigaction action {};
  action.sa_handler = [](int) { g_taken = 1; };
  sigaction(SIGUSR1, &action, nullptr);
  sigset_t blocked, before, after;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  for (int i = 0; i < 5; ++i) {
    if (auto wrong = big_right(); !wrong.empty()) return wrong;
    kill(getpid(), SIGUSR1);
    if (auto wrong = big_right(); !wrong.empty()) return wrong;
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    if (!same(before, after)) return "the signal mask changed";
  }
  usleep(20000);
  if (g_taken != 0) return "a thread of the library took a signal of the host";
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGUSR1) == 1 ? "" : "the signal is not pending";
}

std::atomic<int> g_ticks{0};

// A timer that interrupts every wait, without SA_RESTART.
std::string interrupted_by_a_timer() {
  struct sigaction action {};
  action.sa_handler = [](int) { ++g_ticks; };
  sigaction(SIGALRM, &action, nullptr);
  const itimerval every_200us{{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &every_200us, nullptr);
  std::string wrong;
  for (int i = 0; i < 10 && wrong.empty(); ++i) wrong = big_right();
  const itimerval off{};
  setitimer(ITIMER_REAL, &off, nullptr);
  alarm(60);
  if (wrong.empty() && g_ticks == 0) wrong = "the timer never struck";
  return wrong;
}

// --- the floating-point environment ---

unsigned flush_modes() {
#if defined(__x86_64__)
  return _mm_getcsr() & 0x8040U;  // flush-to-zero, denormals-are-zero
#else
  return 0;
#endif
}

void set_flush_modes() {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040U);
#endif
}

void multiply_in_hosts_environment(const GemmCall& call, std::string& wrong) {
  std::fenv_t kept;
  std::fegetenv(&kept);
  std::fesetround(FE_UPWARD);
  set_flush_modes();
  feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
  std::feclearexcept(FE_ALL_EXCEPT);
  const unsigned modes = flush_modes();
  multiply(call);
  if (std::fegetround() != FE_UPWARD) wrong = "the rounding mode changed";
  if (flush_modes() != modes) wrong = "the flush modes changed";
  if (fegetexcept() != (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW)) wrong = "the traps changed";
  std::fesetenv(&kept);
}

// Operands as small as subnormals: flushing them, or their products, would be far outside the bound.
Product subnormal_product() {
  Product product(ProductShape{big(), big() - 1, 33, Transpose::no, Transpose::yes, 0, 0, 1, 1, 0.5F});
  const GemmCall call = product.call();
  for (std::int64_t i = 0; i < call.lda * call.k; ++i) product.a()[i] *= 0x1p-130F;
  for (std::int64_t j = 0; j < call.n; ++j) {
    for (std::int64_t i = 0; i < call.m; ++i) product.c()[i + j * call.ldc] *= 0x1p-128F;
  }
  product.remember_c();
  return product;
}

// What the CPU BLAS does with the modes is its own; they are restored on every route, and on the GPU's they
// make no difference.
std::string hosts_floating_point(bool results_too) {
  std::string wrong;
  // The first call of the process: threads that it starts must not inherit the modes.
  Product small = subnormal_product();
  multiply_in_hosts_environment(small.call(), wrong);
  if (!wrong.empty() || !results_too) return wrong;
  if (wrong = small.check(); !wrong.empty()) return "subnormals: " + wrong;

  ProductShape shape{big(), big(), big()};
  shape.beta = 0.3F;
  Product product(shape);
  multiply(product.call());
  const std::vector<float> by_default(product.c(), product.c() + product.c_size());
  product.restore_c();
  multiply_in_hosts_environment(product.call(), wrong);
  if (!wrong.empty()) return wrong;
  if (std::memcmp(by_default.data(), product.c(), by_default.size() * sizeof(float)) != 0) {
    return "the host's rounding mode changed the result";
  }
  return product.check();
}
std::string floating_point_kept() {
  return hosts_floating_point(false);
}
std::string floating_point_makes_no_difference() {
  return hosts_floating_point(true);
}

constexpr Scenario kScenarios[] = {
    {"errno kept", errno_kept},
    {"signals are the host's", signals_are_the_hosts},
    {"interrupted by a timer", interrupted_by_a_timer},
    {"floating point kept", floating_point_kept},
    {"floating point makes no difference", floating_point_makes_no_difference},
};

}  // namespace

std::span<const Scenario> host_state_scenarios() {
  return kScenarios;
}

}  // namespace gemmhoist::cases
