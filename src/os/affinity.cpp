#include "os/affinity.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "os/cgroup.hpp"
#include "os/errno_guard.hpp"
#include "os/os.hpp"

namespace gemmhoist::os {
namespace {

// cpu_set_t ends at 1024 CPUs, and the kernel refuses a mask shorter than its own (8192 bits in the largest
// x86 configuration). Room for 16384, in zero pages until it is used.
constexpr std::size_t kMaskWords = 256;
constinit unsigned long mask[kMaskWords] = {};
constinit std::atomic<std::size_t> mask_bytes{0};  // 0: nothing remembered yet
constinit std::atomic<int> cached_usable{0};

std::size_t remembered_mask_bytes() noexcept {
  if (mask_bytes.load(std::memory_order_acquire) == 0) remember_affinity();
  return mask_bytes.load(std::memory_order_acquire);
}

}  // namespace

// The raw system calls: glibc's wrapper pads the mask, and hides how long the kernel's is.
void remember_affinity() noexcept {
  const ErrnoGuard keep_errno;
  if (mask_bytes.load(std::memory_order_acquire) != 0) return;
  const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
  if (bytes > 0) mask_bytes.store(static_cast<std::size_t>(bytes), std::memory_order_release);
}

void apply_remembered_affinity() noexcept {
  const ErrnoGuard keep_errno;
  const std::size_t bytes = remembered_mask_bytes();
  if (bytes != 0) syscall(SYS_sched_setaffinity, 0, bytes, mask);
}

int remembered_cpus() noexcept {
  const std::size_t words = remembered_mask_bytes() / sizeof mask[0];
  int cpus = 0;
  for (std::size_t i = 0; i < words; ++i) cpus += std::popcount(mask[i]);
  return cpus > 0 ? cpus : 1;
}

int usable_cpus() noexcept {
  // Threads that race here compute the same answer: no lock that a fork could leave locked.
  if (const int known = cached_usable.load(std::memory_order_relaxed)) return known;
  const ErrnoGuard keep_errno;
  const int affinity = remembered_cpus();
  const int quota = cgroup_cpus("");
  const int usable = quota > 0 && quota < affinity ? quota : affinity;
  cached_usable.store(usable, std::memory_order_relaxed);
  return usable;
}

}  // namespace gemmhoist::os
