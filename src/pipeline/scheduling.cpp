#include "pipeline/scheduling.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>

namespace gemmhoist::pipeline {
namespace {

// The least that the kernel grants. It is the slice that decides who goes first when a thread wakes; a copy
// of 64 KiB takes a tenth of it.
constexpr std::uint64_t kSliceNs = 100'000;

// struct sched_attr in its first version: glibc declares it from 2.41 on.
struct Attributes {
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime, deadline, period;
};
static_assert(sizeof(Attributes) == 48);

// CPUs that a thread of the pool has to itself and its like: three threads to four CPUs on the usual host.
constexpr int kCpusAGroup = 4;

// cpu_set_t ends at 1024 CPUs, and the kernel refuses a mask shorter than its own.
constexpr std::size_t kMaskWords = 256;
constexpr std::size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;

}  // namespace

void prefer_short_slice() noexcept {
  Attributes attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER && attributes.policy != SCHED_BATCH) return;
  attributes.size = sizeof attributes;
  attributes.flags = 0;
  attributes.runtime = kSliceNs;
  // Nice value and policy go back as they were; a filter that forbids the call leaves everything as it is.
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

// The groups are runs of CPU numbers, so that a group's CPUs are near each other; the last one takes what is
// left.
void keep_apart(int index) noexcept {
  unsigned long mask[kMaskWords] = {};
  const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
  if (bytes <= 0) return;
  const std::size_t words = static_cast<std::size_t>(bytes) / sizeof *mask;
  int cpus = 0;
  for (std::size_t i = 0; i < words; ++i) cpus += __builtin_popcountl(mask[i]);
  const int groups = cpus / kCpusAGroup;
  if (groups < 2) return;
  const int mine = index % groups;
  int cpu = 0;  // counted among those of the mask
  for (std::size_t bit = 0; bit < words * kWordBits; ++bit) {
    unsigned long& word = mask[bit / kWordBits];
    const unsigned long here = 1UL << bit % kWordBits;
    if ((word & here) == 0) continue;
    if (std::min(cpu++ / kCpusAGroup, groups - 1) != mine) word &= ~here;
  }
  (void)syscall(SYS_sched_setaffinity, 0, static_cast<std::size_t>(bytes), mask);
}

}  // namespace gemmhoist::pipeline
