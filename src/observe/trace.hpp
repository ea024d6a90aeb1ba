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

// Copies; lock-free, no heap (maps a block of memory every few thousand spans), any thread. A span beyond the
// first million, or without memory, is dropped and counted.
void add_span(const Span& span) noexcept;
// At exit, atomically (temporary file, rename); no file where there are no spans.
void write_trace() noexcept;
// In a forked child: forgets the parent's spans; and, unless the path holds "%p", writes none of its own, as
// that would replace the parent's file.
void reset_trace_after_fork() noexcept;

}  // namespace gemmhoist::observe
