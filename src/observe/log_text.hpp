// The texts of the decision log, apart from where they go.
#pragma once

#include "observe/decision_log.hpp"
#include "os/line.hpp"

namespace gemmhoist::observe {

// For people: "gemmhoist: cblas_sgemm NN m=64 n=64 k=64 cpu (cpu_faster) 0.02 ms, predicted gpu 0.3 cpu 0.01
// ms"
void describe_call(os::Line& line, const CallRecord& record) noexcept;

// For programs: one JSON object.
void encode_call(os::Line& line, const CallRecord& record) noexcept;
void encode_summary(os::Line& line) noexcept;

// The summary's lines for people, from the counters.
inline constexpr int kSummaryLines = 3;
void describe_summary(os::Line& line, int index) noexcept;

}  // namespace gemmhoist::observe
