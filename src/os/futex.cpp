#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "os/errno_guard.hpp"
#include "os/os.hpp"

namespace gemmhoist::os {
namespace {

bool still(const std::uint32_t* word, std::uint32_t expected) noexcept {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE) == expected;
}

}  // namespace

// FUTEX_WAIT_BITSET takes an absolute monotonic time, so that a signal does not lengthen the wait. The raw
// system call is no cancellation point.
void futex_wait(const std::uint32_t* word, std::uint32_t expected, std::int64_t deadline_ns) noexcept {
  const ErrnoGuard keep_errno;
  timespec deadline{};
  if (deadline_ns > 0) {
    deadline.tv_sec = static_cast<time_t>(deadline_ns / 1'000'000'000);
    deadline.tv_nsec = static_cast<long>(deadline_ns % 1'000'000'000);
  }
  while (still(word, expected)) {
    const long result = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
                                deadline_ns > 0 ? &deadline : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
    if (result == 0 || errno == EAGAIN || errno == EINTR) continue;
    return;  // ETIMEDOUT; anything else (a filter that forbids futex) must not become an endless loop either
  }
}

void futex_wake(const std::uint32_t* word, int count) noexcept {
  const ErrnoGuard keep_errno;
  syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, nullptr, nullptr, 0);
}

}  // namespace gemmhoist::os
