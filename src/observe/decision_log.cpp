#include "observe/decision_log.hpp"

#include <unistd.h>

#include "config/options.hpp"
#include "observe/log_text.hpp"
#include "observe/output_path.hpp"
#include "os/files.hpp"
#include "os/line.hpp"
#include "os/once.hpp"
#include "os/os.hpp"

namespace gemmhoist::observe {
namespace {

// What is wanted, as bits.
constexpr int kCallsToStderr = 1, kSummaryToStderr = 2, kFile = 4;
constinit os::Once looking;
constinit int wanted = 0;
constinit char file_path[os::kPathBytes] = {};

__attribute__((noinline, cold)) void look_at_options() noexcept {
  const config::Options& options = config::options();
  int bits = 0;
  if (options.log == config::LogLevel::calls) bits |= kCallsToStderr | kSummaryToStderr;
  if (options.log == config::LogLevel::summary) bits |= kSummaryToStderr;
  if (options.log_file[0] != '\0') {
    if (make_absolute(options.log_file, file_path, sizeof file_path))
      bits |= kFile;
    else
      warn(Warning::log_file, "GEMMHOIST_LOG_FILE=%s is no usable path", options.log_file);
  }
  wanted = bits;
}

int wanted_now() noexcept {
  looking.run(look_at_options);
  return wanted;
}

void append_to_log_file(os::Line& line) noexcept {
  if (line.append_to(file_path)) return;
  warn(Warning::log_file, "cannot write GEMMHOIST_LOG_FILE=%s", file_path);
}

// Apart, so that only one Line at a time is on the caller's stack.
__attribute__((noinline)) void log_to_file(const CallRecord& record) noexcept {
  os::Line line;
  encode_call(line, record);
  append_to_log_file(line);
}

__attribute__((noinline)) void log_to_stderr(const CallRecord& record) noexcept {
  os::Line line;
  describe_call(line, record);
  line.write_to(STDERR_FILENO);
}

}  // namespace

bool call_log_enabled() noexcept {
  return (wanted_now() & (kCallsToStderr | kFile)) != 0;
}

void log_call(const CallRecord& record) noexcept {
  const os::DefaultFloatingPoint no_traps;  // times are rounded here, which raises "inexact"
  const int bits = wanted_now();
  if ((bits & kCallsToStderr) != 0) log_to_stderr(record);
  if ((bits & kFile) != 0) log_to_file(record);
}

void write_summary() noexcept {
  const int bits = wanted_now();
  if ((bits & kSummaryToStderr) != 0) {
    for (int i = 0; i < kSummaryLines; ++i) {
      os::Line line;
      describe_summary(line, i);
      line.write_to(STDERR_FILENO);
    }
  }
  if ((bits & kFile) != 0) {
    os::Line line;
    encode_summary(line);
    append_to_log_file(line);
  }
}

}  // namespace gemmhoist::observe
