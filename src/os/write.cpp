#include <signal.h>
#include <unistd.h>

#include <ctime>
#include <initializer_list>

#include "os/errno_guard.hpp"
#include "os/os.hpp"

namespace gemmhoist::os {
namespace {

// Writing to a pipe that nobody reads raises SIGPIPE, and writing past RLIMIT_FSIZE raises SIGXFSZ; either
// would end the host for our sake. Both are thread-directed: they are blocked in this thread for the write,
// and one that the write raised is taken off before the old mask returns. One that was pending before is the
// host's and stays.
class NoWriteSignals {
 public:
  NoWriteSignals() noexcept {
    sigset_t pending;
    sigemptyset(&ours_);
    sigpending(&pending);
    for (const int number : {SIGPIPE, SIGXFSZ})
      if (sigismember(&pending, number) == 0) sigaddset(&ours_, number);
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGPIPE);
    sigaddset(&both, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &both, &previous_);
  }
  ~NoWriteSignals() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }
  NoWriteSignals(const NoWriteSignals&) = delete;
  NoWriteSignals& operator=(const NoWriteSignals&) = delete;

  void take_raised() noexcept {
    const timespec at_once{};
    while (sigtimedwait(&ours_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }

 private:
  sigset_t ours_, previous_;
};

}  // namespace

bool write_all(int fd, const char* text, std::size_t bytes) noexcept {
  const ErrnoGuard keep_errno;
  const NoCancellation no_cancellation;
  NoWriteSignals guard;
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
