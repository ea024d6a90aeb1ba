#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <initializer_list>

#include "core/checked.hpp"
#include "os/affinity.hpp"
#include "os/errno_guard.hpp"
#include "os/floating_point.hpp"
#include "os/os.hpp"

namespace gemmhoist::os {
namespace {

// What a new thread needs to know. The creator does not wait for it (it may hold the loader's lock), so this
// cannot live on its stack: a slot is taken here, and given back by the thread as soon as it has read it.
struct Start {
  std::atomic<bool> taken;
  char name[16];
  void (*body)(void*);
  void* argument;
};
constinit Start starts[64] = {};

Start* take_start() noexcept {
  for (Start& start : starts) {
    bool free = false;
    if (start.taken.compare_exchange_strong(free, true, std::memory_order_acquire)) return &start;
  }
  return nullptr;
}

extern "C" void* gemmhoist_thread_main(void* argument) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  set_default_floating_point();  // a thread inherits its creator's rounding, flush modes and traps
  apply_remembered_affinity();
  auto* start = static_cast<Start*>(argument);
  pthread_setname_np(pthread_self(), start->name);
  void (*const body)(void*) = start->body;
  void* const body_argument = start->argument;
  start->taken.store(false, std::memory_order_release);
  try {
    body(body_argument);
  } catch (...) {  // bodies catch their own; nothing of ours may end the host
  }
  return nullptr;
}

// Real-time policies are the host's choice for its own thread, not for ours: a copy thread under SCHED_FIFO
// could starve the machine, and SCHED_DEADLINE cannot be inherited at all. SCHED_BATCH and SCHED_IDLE are
// inherited like nice values.
void choose_policy(pthread_attr_t& attributes) noexcept {
  const int policy = sched_getscheduler(0);
  if (policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE || policy < 0) return;
  sched_param parameter{};
  pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
  pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
  pthread_attr_setschedparam(&attributes, &parameter);
}

std::size_t legal_stack(std::size_t bytes) noexcept {
  const long least = sysconf(_SC_THREAD_STACK_MIN);  // grows with the CPU's vector state
  if (least > 0 && bytes < static_cast<std::size_t>(least)) bytes = static_cast<std::size_t>(least);
  return static_cast<std::size_t>(round_up(static_cast<std::int64_t>(bytes), 4096));
}

bool create(pthread_attr_t& attributes, Start& start) noexcept {
  // The mask is set in the creator, so that there is no moment in which the new thread could take one of the
  // host's signals. The synchronous ones stay open: blocked, they would kill the process without its handler.
  sigset_t blocked, previous;
  sigfillset(&blocked);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&blocked, number);
  if (pthread_sigmask(SIG_SETMASK, &blocked, &previous) != 0) return false;
  pthread_t thread;
  const bool made = pthread_create(&thread, &attributes, gemmhoist_thread_main, &start) == 0;
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  return made;
}

}  // namespace

bool start_thread(const char* name, std::size_t stack_bytes, void (*body)(void*), void* argument) noexcept {
  const ErrnoGuard keep_errno;
  Start* start = take_start();
  if (start == nullptr) return false;
  std::strncpy(start->name, name, sizeof start->name - 1);
  start->name[sizeof start->name - 1] = '\0';
  start->body = body;
  start->argument = argument;

  bool made = false;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) == 0) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    choose_policy(attributes);
    made =
        pthread_attr_setstacksize(&attributes, legal_stack(stack_bytes)) == 0 && create(attributes, *start);
    pthread_attr_destroy(&attributes);
  }
  if (!made) start->taken.store(false, std::memory_order_release);
  return made;
}

NoCancellation::NoCancellation() noexcept : previous_(PTHREAD_CANCEL_ENABLE) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous_);
}

NoCancellation::~NoCancellation() {
  pthread_setcancelstate(previous_, nullptr);
}

}  // namespace gemmhoist::os
