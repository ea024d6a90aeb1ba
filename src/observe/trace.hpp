// Trace: spans in the trace-event JSON format (opens in Perfetto and chrome://tracing).
#pragma once

#include <cstdint>

namespace gemmhoist::observe {

// Monotonic nanoseconds, the clock of every span.
std::int64_t now_ns() noexcept;

bool trace_enabled() noexcept;  // cheap: an atomic load; callers skip building spans when false

// A row of the timeline. `kind` names the family ("copy thread", "H2D stream", "compute stream", "D2H
// stream", "caller"), `index` the member. name: a string literal or one with static lifetime.
struct Span {
  const char* row;
  int device;  // -1: host
  int index;
  const char* name;
  std::int64_t begin_ns, end_ns;
  std::int64_t bytes;  // 0: none
};

void add_span(const Span& span) noexcept;  // copies; may allocate; drops the span when that fails
void write_trace() noexcept;               // at exit, atomically (temporary file, rename)

}  // namespace gemmhoist::observe
