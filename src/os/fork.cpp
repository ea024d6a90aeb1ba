// Fork detection. A page that the kernel hands to a child as zeros (MADV_WIPEONFORK, Linux 4.14) tells a
// child apart for the price of a load, and sees raw clone() too, which runs no atfork handler. Where the
// kernel lacks it, the process id is compared instead: as reliable, but a system call (about 100 ns).
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "os/errno_guard.hpp"
#include "os/os.hpp"

namespace gemmhoist::os {
namespace {

constexpr std::size_t kPage = 4096;
constinit std::atomic<std::uint32_t*> wiped_word{nullptr};
constinit std::atomic<pid_t> armed_pid{0};  // where there is no such page

std::uint32_t* make_wiped_word() noexcept {
  void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (madvise(page, kPage, MADV_WIPEONFORK) == 0) return static_cast<std::uint32_t*>(page);
  munmap(page, kPage);
  return nullptr;
}

}  // namespace

void arm_fork_detection() noexcept {
  const ErrnoGuard keep_errno;
  std::uint32_t* word = wiped_word.load(std::memory_order_acquire);
  if (word == nullptr) {
    word = make_wiped_word();
    if (word == nullptr) {
      armed_pid.store(getpid(), std::memory_order_release);
      return;
    }
    __atomic_store_n(word, 1u, __ATOMIC_RELEASE);
    std::uint32_t* none = nullptr;
    if (!wiped_word.compare_exchange_strong(none, word, std::memory_order_acq_rel)) munmap(word, kPage);
    return;
  }
  __atomic_store_n(word, 1u, __ATOMIC_RELEASE);
}

bool forked_since_armed() noexcept {
  if (const std::uint32_t* word = wiped_word.load(std::memory_order_acquire))
    return __atomic_load_n(word, __ATOMIC_ACQUIRE) == 0;
  const pid_t armed = armed_pid.load(std::memory_order_acquire);
  return armed != 0 && armed != getpid();
}

}  // namespace gemmhoist::os
