#include "observe/output_path.hpp"

#include <unistd.h>

#include <cstring>

#include "os/errno_guard.hpp"

namespace gemmhoist::observe {

bool make_absolute(const char* path, char* absolute, std::size_t capacity) noexcept {
  const os::ErrnoGuard keep_errno;
  std::size_t size = 0;
  if (path[0] != '/') {
    // The kernel's answer begins with "(unreachable)" where the directory lies outside our root.
    if (getcwd(absolute, capacity) == nullptr || absolute[0] != '/') return false;
    size = std::strlen(absolute);
    if (size + 1 < capacity) absolute[size++] = '/';
  }
  const std::size_t length = std::strlen(path);
  if (size + length + 1 > capacity) return false;
  std::memcpy(absolute + size, path, length + 1);
  return true;
}

bool names_process(const char* path) noexcept {
  return std::strstr(path, "%p") != nullptr;
}

}  // namespace gemmhoist::observe
