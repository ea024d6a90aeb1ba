#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>

#include "os/errno_guard.hpp"
#include "os/os.hpp"

namespace gemmhoist::os {
namespace {

// The kernel's own signal set is 8 bytes; libc's is 128, and three of them are a lot on a stack of 16 KiB.
// Hence the raw system calls (the kernel's set has the signals that libc keeps for itself too, but none of
// those is touched here).
using SignalSet = std::uint64_t;
static_assert(_NSIG == 65);

constexpr SignalSet bit(int number) noexcept {
  return SignalSet{1} << (number - 1);
}
constexpr SignalSet kWriteSignals = bit(SIGPIPE) | bit(SIGXFSZ);

// Writing to a pipe that nobody reads raises SIGPIPE, and writing past RLIMIT_FSIZE raises SIGXFSZ; either
// would end the host for our sake. Both are thread-directed: they are blocked in this thread for the write,
// and one that the write raised is taken off before the old mask returns. One that was pending before is the
// host's and stays.
class NoWriteSignals {
 public:
  NoWriteSignals() noexcept {
    syscall(SYS_rt_sigpending, &pending_, sizeof pending_);
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &kWriteSignals, &previous_, sizeof previous_);
  }
  ~NoWriteSignals() { syscall(SYS_rt_sigprocmask, SIG_SETMASK, &previous_, nullptr, sizeof previous_); }
  NoWriteSignals(const NoWriteSignals&) = delete;
  NoWriteSignals& operator=(const NoWriteSignals&) = delete;

  void take_raised() const noexcept {
    const SignalSet ours = kWriteSignals & ~pending_;
    const timespec at_once{};
    while (syscall(SYS_rt_sigtimedwait, &ours, nullptr, &at_once, sizeof ours) < 0 && errno == EINTR) {
    }
  }

 private:
  SignalSet pending_ = 0, previous_ = 0;
};

}  // namespace

bool write_all(int fd, const char* text, std::size_t bytes) noexcept {
  const ErrnoGuard keep_errno;
  const NoCancellation no_cancellation;
  const NoWriteSignals guard;
  while (bytes > 0) {
    const ssize_t written = write(fd, text, bytes);
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == EPIPE || errno == EFBIG) guard.take_raised();
      return false;
    }
    text += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace gemmhoist::os
