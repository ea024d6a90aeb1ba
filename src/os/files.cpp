#include "os/files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "os/errno_guard.hpp"
#include "os/line.hpp"
#include "os/os.hpp"

namespace gemmhoist::os {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{64} << 10;
constexpr mode_t kMode = 0666;  // less the umask, as for any file that a program makes

}  // namespace

struct AtomicFile::State {
  int fd;
  bool direct;  // no temporary file: the target is no regular file
  bool failed;
  std::size_t used;
  char path[kPathBytes];
  char temporary[kPathBytes + 64];
  char buffer[kBufferBytes];
};

bool AtomicFile::open(const char* pattern) noexcept {
  const ErrnoGuard keep_errno;
  const NoCancellation no_cancellation;
  if (state_ != nullptr) return false;
  void* memory = mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  state_ = static_cast<State*>(memory);
  State& s = *state_;
  s.fd = -1;
  if (!expand_path(pattern, s.path, sizeof s.path)) {
    discard();
    return false;
  }
  // rename() would put a regular file in the place of a device node or a FIFO.
  struct stat target {};
  s.direct = stat(s.path, &target) == 0 && !S_ISREG(target.st_mode);
  if (s.direct) {
    s.fd = ::open(s.path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  } else {
    static constinit std::atomic<unsigned> serial{0};
    Line suffix;
    suffix.character('.').integer(getpid()).character('.');
    suffix.count(serial.fetch_add(1, std::memory_order_relaxed)).text(".tmp");
    const std::size_t length = std::strlen(s.path);
    std::memcpy(s.temporary, s.path, length);
    std::memcpy(s.temporary + length, suffix.c_str(), suffix.size() + 1);
    s.fd = ::open(s.temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, kMode);
  }
  if (s.fd < 0) discard();
  return state_ != nullptr;
}

bool AtomicFile::append(const char* text, std::size_t bytes) noexcept {
  if (state_ == nullptr) return false;
  State& s = *state_;
  while (bytes > 0 && !s.failed) {
    const std::size_t room = kBufferBytes - s.used;
    const std::size_t piece = bytes < room ? bytes : room;
    std::memcpy(s.buffer + s.used, text, piece);
    s.used += piece;
    text += piece;
    bytes -= piece;
    if (s.used == kBufferBytes) flush();
  }
  return !s.failed;
}

bool AtomicFile::flush() noexcept {
  State& s = *state_;
  if (!write_all(s.fd, s.buffer, s.used)) s.failed = true;
  s.used = 0;
  return !s.failed;
}

bool AtomicFile::commit() noexcept {
  const ErrnoGuard keep_errno;
  const NoCancellation no_cancellation;
  if (state_ == nullptr) return false;
  State& s = *state_;
  bool whole = flush();
  // No fsync: these files are wanted whole, not proof against a power cut, and fsync can take a second.
  // close() is where a quota or a network file system reports that there was no room.
  if (close(s.fd) != 0 && errno != EINTR) whole = false;
  s.fd = -1;
  if (whole && !s.direct) whole = rename(s.temporary, s.path) == 0;
  if (whole) s.temporary[0] = '\0';
  discard();
  return whole;
}

void AtomicFile::discard() noexcept {
  if (state_ == nullptr) return;
  if (state_->fd >= 0) close(state_->fd);
  if (state_->temporary[0] != '\0') unlink(state_->temporary);
  munmap(state_, sizeof(State));
  state_ = nullptr;
}

AtomicFile::~AtomicFile() {
  const ErrnoGuard keep_errno;
  const NoCancellation no_cancellation;
  discard();
}

bool write_file_atomically(const char* path, const char* text, std::size_t bytes) noexcept {
  AtomicFile file;
  return file.open(path) && file.append(text, bytes) && file.commit();
}

namespace {

bool append_to_path(const char* path, const char* text, std::size_t bytes) noexcept {
  const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, kMode);
  if (fd < 0) return false;
  const bool written = write_all(fd, text, bytes);
  close(fd);
  return written;
}

// Apart: its buffer is on the stack of those only who need it.
__attribute__((noinline)) bool append_expanded(const char* pattern, const char* text,
                                               std::size_t bytes) noexcept {
  char path[kPathBytes];
  return expand_path(pattern, path, sizeof path) && append_to_path(path, text, bytes);
}

}  // namespace

bool append_to_file(const char* pattern, const char* text, std::size_t bytes) noexcept {
  const ErrnoGuard keep_errno;
  const NoCancellation no_cancellation;
  return std::strchr(pattern, '%') == nullptr ? append_to_path(pattern, text, bytes)
                                              : append_expanded(pattern, text, bytes);
}

bool expand_path(const char* pattern, char* path, std::size_t capacity) noexcept {
  if (capacity == 0) return false;
  char digits[12];  // of the process id, from the right
  char* const end = digits + sizeof digits;
  char* begin = end;
  for (pid_t rest = getpid(); rest > 0; rest /= 10) *--begin = static_cast<char>('0' + rest % 10);
  std::size_t size = 0;
  while (*pattern != '\0') {
    const bool is_pid = pattern[0] == '%' && pattern[1] == 'p';
    const char* piece = is_pid ? begin : pattern;
    const std::size_t length = is_pid ? static_cast<std::size_t>(end - begin) : 1;
    if (size + length + 1 > capacity) return false;
    std::memcpy(path + size, piece, length);
    size += length;
    pattern += is_pid ? 2 : 1;
  }
  path[size] = '\0';
  return true;
}

}  // namespace gemmhoist::os
