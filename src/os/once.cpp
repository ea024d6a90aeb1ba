#include "os/once.hpp"

#include <unistd.h>

#include "os/os.hpp"

namespace gemmhoist::os {
namespace {

const std::uint32_t* word(const std::atomic<std::int32_t>& state) noexcept {
  static_assert(sizeof state == sizeof(std::uint32_t));
  return reinterpret_cast<const std::uint32_t*>(&state);
}

}  // namespace

bool Once::begin() noexcept {
  constexpr std::int64_t kLookAgainNs = 1'000'000;
  const std::int32_t self = getpid();
  std::int32_t seen = state_.load(std::memory_order_acquire);
  while (seen != kDone) {
    if (seen == self) {
      futex_wait(word(state_), static_cast<std::uint32_t>(seen), monotonic_ns() + kLookAgainNs);
      seen = state_.load(std::memory_order_acquire);
    } else if (state_.compare_exchange_strong(seen, self, std::memory_order_acq_rel)) {
      return true;
    }
  }
  return false;
}

void Once::end() noexcept {
  state_.store(kDone, std::memory_order_release);
  futex_wake(word(state_), 1 << 30);
}

}  // namespace gemmhoist::os
