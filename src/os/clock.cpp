#include <ctime>

#include "os/os.hpp"

namespace gemmhoist::os {

std::int64_t monotonic_ns() noexcept {
  timespec now{};  // through the vDSO: about 20 ns, no system call
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace gemmhoist::os
