#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <atomic>
#include <cerrno>
#include <cfenv>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "os/os.hpp"

namespace gemmhoist::os {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::size_t kStack = 256 << 10;

// What a thread saw of itself, and a word that says when it is done.
struct Seen {
  std::uint32_t done = 0;
  sigset_t mask;
  int cancel_state = -1;
  int rounding = -1;
  unsigned mxcsr = 0;
  int policy = -1;
  bool detached = false;
  std::size_t stack = 0;
  char name[32] = {};
};

void finish(Seen& seen) {
  __atomic_store_n(&seen.done, 1u, __ATOMIC_RELEASE);
  futex_wake(&seen.done, 1);
}

void look(void* argument) {
  Seen& seen = *static_cast<Seen*>(argument);
  pthread_sigmask(SIG_BLOCK, nullptr, &seen.mask);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &seen.cancel_state);
  seen.rounding = std::fegetround();
  seen.mxcsr = _mm_getcsr();
  seen.policy = sched_getscheduler(0);
  pthread_getname_np(pthread_self(), seen.name, sizeof seen.name);
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    int state = 0;
    pthread_attr_getdetachstate(&attributes, &state);
    seen.detached = state == PTHREAD_CREATE_DETACHED;
    pthread_attr_getstacksize(&attributes, &seen.stack);
    pthread_attr_destroy(&attributes);
  }
  finish(seen);
}

bool wait_done(Seen& seen) {
  futex_wait(&seen.done, 0, monotonic_ns() + 20 * kSecond);
  return __atomic_load_n(&seen.done, __ATOMIC_ACQUIRE) == 1;
}

TEST(StartThread, IsUntouchedByItsCreatorsState) {
  sigset_t before, after;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  const int rounding = std::fegetround();
  std::fesetround(FE_UPWARD);
  const unsigned mxcsr = _mm_getcsr();
  _mm_setcsr(mxcsr | 0x8040);  // flush to zero, denormals are zero
  errno = 77;
  Seen seen;
  const bool started = start_thread("a rather long name", kStack, look, &seen);
  const int kept_errno = errno;
  const bool done = started && wait_done(seen);
  const int kept_rounding = std::fegetround();
  _mm_setcsr(mxcsr);
  std::fesetround(rounding);
  pthread_sigmask(SIG_BLOCK, nullptr, &after);

  ASSERT_TRUE(done);
  EXPECT_EQ(kept_errno, 77);
  EXPECT_EQ(kept_rounding, FE_UPWARD);
  for (int number = 1; number < NSIG; ++number)
    EXPECT_EQ(sigismember(&before, number), sigismember(&after, number)) << number;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP})
    EXPECT_EQ(sigismember(&seen.mask, number), 0) << number;
  for (const int number : {SIGINT, SIGTERM, SIGALRM, SIGPROF, SIGCHLD, SIGUSR1, SIGPIPE, SIGRTMIN + 3})
    EXPECT_EQ(sigismember(&seen.mask, number), 1) << number;
  EXPECT_EQ(seen.cancel_state, PTHREAD_CANCEL_DISABLE);
  EXPECT_EQ(seen.rounding, FE_TONEAREST);
  EXPECT_EQ(seen.mxcsr & 0x8040u, 0u);
  EXPECT_STREQ(seen.name, "a rather long n");
  EXPECT_TRUE(seen.detached);
  EXPECT_GE(seen.stack, kStack);
}

TEST(StartThread, TinyStackIsRaisedToTheLeastLegal) {
  Seen seen;
  ASSERT_TRUE(start_thread("tiny", 1, look, &seen));
  EXPECT_TRUE(wait_done(seen));
}

TEST(StartThread, ImpossibleStackIsRefusedEveryTime) {
  Seen seen;
  for (int i = 0; i < 200; ++i)  // more often than there are start slots: none leaks
    ASSERT_FALSE(start_thread("huge", std::size_t{1} << 55, look, &seen));
  ASSERT_TRUE(start_thread("fine", kStack, look, &seen));
  EXPECT_TRUE(wait_done(seen));
}

TEST(StartThread, ManyOneAfterAnother) {
  for (int i = 0; i < 300; ++i) {
    Seen seen;
    ASSERT_TRUE(start_thread("many", kStack, look, &seen)) << i;
    ASSERT_TRUE(wait_done(seen));
  }
}

TEST(StartThread, AnExceptionOfTheBodyEndsThatThreadOnly) {
  static std::atomic<bool> thrown{false};
  ASSERT_TRUE(start_thread(
      "throws", kStack,
      [](void*) {
        thrown = true;
        throw std::runtime_error("stays here");
      },
      nullptr));
  const std::int64_t deadline = monotonic_ns() + 20 * kSecond;
  while (!thrown && monotonic_ns() < deadline) usleep(1000);
  usleep(20000);  // terminate() would come now
  EXPECT_TRUE(thrown);
}

TEST(NoCancellation, HoldsForItsScope) {
  int state = -1;
  {
    const NoCancellation guard;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    EXPECT_EQ(state, PTHREAD_CANCEL_DISABLE);
  }
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  EXPECT_EQ(state, PTHREAD_CANCEL_ENABLE);
}

TEST(DefaultFloatingPoint, HoldsForItsScopeAndGivesBackTheHosts) {
  std::fenv_t original;
  std::fegetenv(&original);
  std::fesetround(FE_DOWNWARD);
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(FE_OVERFLOW);
  _mm_setcsr(_mm_getcsr() | 0x8040);
  const unsigned mxcsr = _mm_getcsr();
  int inside_round = -1;
  unsigned inside_mxcsr = 0;
  {
    const DefaultFloatingPoint guard;
    inside_round = std::fegetround();
    inside_mxcsr = _mm_getcsr();
    volatile float zero = 0;
    volatile float raised = 1 / zero;  // a flag that must not leak
    (void)raised;
  }
  const int after_round = std::fegetround();
  const int flags = std::fetestexcept(FE_ALL_EXCEPT);
  const unsigned after_mxcsr = _mm_getcsr();
  std::fesetenv(&original);
  EXPECT_EQ(inside_round, FE_TONEAREST);
  EXPECT_EQ(inside_mxcsr & 0xFFC0u, 0x1F80u);
  EXPECT_EQ(after_round, FE_DOWNWARD);
  EXPECT_EQ(flags & FE_OVERFLOW, FE_OVERFLOW);
  EXPECT_EQ(flags & FE_DIVBYZERO, 0);
  EXPECT_EQ(after_mxcsr, mxcsr);
}

// The x87 unit's own words: control, and the flags of status.
std::pair<unsigned, unsigned> x87() {
  std::uint16_t control = 0, status = 0;
  asm volatile("fnstcw %0\n\tfnstsw %1" : "=m"(control), "=m"(status));
  return {control, status & 0xffU};
}

// long double is the x87 unit's: its flags and its precision are the host's as well, whether the host has
// left the unit as it was or not.
TEST(DefaultFloatingPoint, TheX87UnitToo) {
  std::fenv_t original;
  std::fegetenv(&original);
  for (const bool host_changed_it : {false, true}) {
    asm volatile("fninit");
    if (host_changed_it) {
      const std::uint16_t control = 0x0e7b;  // truncates to 53 bits, divisions by zero trap
      asm volatile("fnclex\n\tfldcw %0" : : "m"(control));
    }
    const auto before = x87();
    std::pair<unsigned, unsigned> inside{1, 1};
    long double kept = 3;
    {
      const DefaultFloatingPoint guard;
      inside = x87();
      volatile long double zero = 0;
      volatile long double raised = kept / zero;  // a flag that must not leak, and no trap
      (void)raised;
      EXPECT_NE(x87().second, 0U);
    }
    EXPECT_EQ(inside, std::make_pair(0x37fU, 0U)) << host_changed_it;
    EXPECT_EQ(x87(), before) << host_changed_it;
    asm volatile("fnclex");
  }
  // Flags that the host raised are there again.
  asm volatile("fninit");
  volatile long double zero = 0;
  volatile long double raised = 1 / zero;
  (void)raised;
  const auto before = x87();
  { const DefaultFloatingPoint guard; }
  const auto after = x87();
  std::fesetenv(&original);
  EXPECT_NE(before.second, 0U);
  EXPECT_EQ(after, before);
}

TEST(Futex, DeadlineEndsTheWait) {
  const std::uint32_t word = 5;
  const std::int64_t begin = monotonic_ns();
  futex_wait(&word, 5, begin + 30'000'000);
  EXPECT_GE(monotonic_ns() - begin, 30'000'000);
  futex_wait(&word, 4, 0);      // another value: at once, though without deadline
  futex_wait(&word, 5, begin);  // passed already: at once
  EXPECT_LT(monotonic_ns() - begin, 10 * kSecond);
}

}  // namespace
}  // namespace gemmhoist::os
