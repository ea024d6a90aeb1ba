// Decision log: one line a call, a summary at exit. GEMMHOIST_LOG says what of it goes to stderr, for people;
// GEMMHOIST_LOG_FILE, where set, gets all of it as JSON lines, whatever GEMMHOIST_LOG says. Else nothing is
// written; warnings are the few lines that are always allowed.
#pragma once

#include <cstdint>

#include "core/gemm_call.hpp"

namespace gemmhoist::observe {

struct CallRecord {
  const char* spelling;  // "cblas_sgemm"
  GemmCall call;
  const char* route;                        // "cpu", "gpu", "gpu+cpu" (rescued)
  const char* reason;                       // a short fixed phrase
  const char* kernel;                       // main kernel, "" on the CPU
  double predicted_cpu_s, predicted_gpu_s;  // 0: no prediction
  double measured_s;                        // what the caller waited; 0: not timed
  double kernel_s;                          // device time of the arithmetic; 0: not known
  double submit_s;                          // the worker's own work until everything was queued; 0: not known
  std::int64_t range_tiles, range_tiles_fp32;  // of a product in bf16x6, and those made in fp32; else 0
};

bool call_log_enabled() noexcept;                  // cheap: an atomic load
void log_call(const CallRecord& record) noexcept;  // stack < 2.5 KiB, no heap, one write(2) a line
void write_summary() noexcept;                     // at exit; reads the counters

// One of the lines that are never silent: prefixed "gemmhoist: ", one write(2) to stderr, at most once a
// `topic`.
enum class Warning : std::uint8_t { bad_setting, no_blas, gpu_lost, log_file, trace_file, count_ };
// format: %s, %d and their like only (%f asks the host's locale).
void warn(Warning topic, const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

}  // namespace gemmhoist::observe
