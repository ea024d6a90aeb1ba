// Once: what a process does once, by whichever thread comes first; the others wait for it. Memory order: what
// was done happens before any done() that says so.
#pragma once

#include <atomic>
#include <cstdint>

namespace gemmhoist::os {

// For static storage. Unlike pthread_once it does not leave a child waiting that was forked while a thread of
// its parent was at it: the child begins anew.
class Once {
 public:
  bool done() const noexcept { return state_.load(std::memory_order_acquire) == kDone; }

  // Runs `work` unless it was; microseconds of work, which must not come back here.
  template <typename Work>
  void run(Work&& work) noexcept {
    if (done() || !begin()) return;
    work();
    end();
  }

  // For a forked child, which is alone: the next run() does it again.
  void forget() noexcept { state_.store(kNotDone, std::memory_order_release); }

 private:
  // Else the id of the process in which a thread is at it.
  static constexpr std::int32_t kNotDone = 0, kDone = -1;

  bool begin() noexcept;  // false: another thread has done it
  void end() noexcept;

  std::atomic<std::int32_t> state_{kNotDone};
};

}  // namespace gemmhoist::os
