#include "config/options.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <atomic>

#include "config/environment.hpp"
#include "os/os.hpp"

namespace gemmhoist::config {
namespace {

// State of the one reading: 0 not begun, -1 done, else the id of the process in which a thread is reading. A
// child forked meanwhile finds its parent's id, knows that nobody will finish, and reads for itself.
// pthread_once would leave such a child waiting for ever.
constexpr std::int32_t kUnread = 0, kDone = -1;
constinit std::atomic<std::int32_t> state{kUnread};
constinit Options current{};
constinit TextStorage storage{};

const std::uint32_t* state_word() noexcept {
  static_assert(sizeof state == sizeof(std::uint32_t));
  return reinterpret_cast<const std::uint32_t*>(&state);
}

// A program with raised privileges takes no settings from whoever started it (what secure_getenv does, for
// the whole block at once).
const char* const* trusted_environment() noexcept {
  static constexpr const char* kNone[] = {nullptr};
  return environ == nullptr || getauxval(AT_SECURE) != 0 ? kNone : environ;
}

__attribute__((noinline, cold)) void read_once() noexcept {
  const std::int32_t self = getpid();
  std::int32_t seen = state.load(std::memory_order_acquire);
  while (seen != kDone) {
    if (seen == self) {  // another thread of this process is reading: it takes microseconds
      os::futex_wait(state_word(), static_cast<std::uint32_t>(seen), os::monotonic_ns() + 1'000'000);
      seen = state.load(std::memory_order_acquire);
    } else if (state.compare_exchange_strong(seen, self, std::memory_order_acq_rel)) {
      current = Options{};
      read_environment(trusted_environment(), current, storage, STDERR_FILENO);
      state.store(kDone, std::memory_order_release);
      os::futex_wake(state_word(), 1 << 30);
      return;
    }
  }
}

}  // namespace

const Options& options() noexcept {
  if (state.load(std::memory_order_acquire) != kDone) read_once();
  return current;
}

}  // namespace gemmhoist::config
