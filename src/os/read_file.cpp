#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "os/errno_guard.hpp"
#include "os/os.hpp"

namespace gemmhoist::os {

std::int64_t read_small_file(const char* path, char* text, std::size_t capacity) noexcept {
  const ErrnoGuard keep_errno;
  const NoCancellation no_cancellation;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return -1;
  std::size_t used = 0;
  bool whole = false;
  while (used < capacity) {
    const ssize_t got = read(fd, text + used, capacity - used);
    if (got < 0 && errno == EINTR) continue;
    whole = got == 0;
    if (got <= 0) break;
    used += static_cast<std::size_t>(got);
  }
  (void)close(fd);
  return whole ? static_cast<std::int64_t>(used) : -1;
}

}  // namespace gemmhoist::os
