#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "observe/decision_log.hpp"
#include "os/errno_guard.hpp"
#include "os/line.hpp"

namespace gemmhoist::observe {
namespace {

constinit std::atomic<bool> told[static_cast<std::size_t>(Warning::count_)] = {};

}  // namespace

// vsnprintf uses neither heap nor locale for %s, %d and the like (for %f it asks the locale: don't).
void warn(Warning topic, const char* format, ...) noexcept {
  const os::ErrnoGuard keep_errno;
  if (told[static_cast<std::size_t>(topic)].exchange(true, std::memory_order_relaxed)) return;
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  os::Line line;
  line.text("gemmhoist: ").quoted_value(text, sizeof text);
  line.write_to(STDERR_FILENO);
}

}  // namespace gemmhoist::observe
