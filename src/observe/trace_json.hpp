// The collected spans as trace-event JSON.
#pragma once

#include <cstddef>

#include "observe/trace.hpp"

namespace gemmhoist::observe {

bool write_trace_json(const char* path) noexcept;

// The collection, for the writer. Places below trace_spans() may still be empty: then false.
std::size_t trace_spans() noexcept;
std::size_t trace_dropped() noexcept;
bool trace_span(std::size_t index, Span& span) noexcept;

}  // namespace gemmhoist::observe
