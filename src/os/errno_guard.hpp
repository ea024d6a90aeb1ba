// ErrnoGuard: the host's errno is its own, whatever our system calls leave in it.
#pragma once

#include <cerrno>

namespace gemmhoist::os {

class ErrnoGuard {
 public:
  ErrnoGuard() noexcept : saved_(errno) {}
  ~ErrnoGuard() { errno = saved_; }
  ErrnoGuard(const ErrnoGuard&) = delete;
  ErrnoGuard& operator=(const ErrnoGuard&) = delete;

 private:
  int saved_;
};

}  // namespace gemmhoist::os
