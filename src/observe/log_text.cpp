#include "observe/log_text.hpp"

#include <unistd.h>

#include "observe/counters.hpp"
#include "observe/trace.hpp"
#include "os/os.hpp"

namespace gemmhoist::observe {
namespace {

void append_prediction(os::Line& line, const CallRecord& r) noexcept {
  if (!(r.predicted_gpu_s > 0) && !(r.predicted_cpu_s > 0)) return;
  line.text(", predicted");
  if (r.predicted_gpu_s > 0) line.text(" gpu ").milliseconds(r.predicted_gpu_s);
  if (r.predicted_cpu_s > 0) line.text(" cpu ").milliseconds(r.predicted_cpu_s);
  line.text(" ms");
}

os::Line& field(os::Line& line, const char* name) noexcept {
  return line.text(",\"").text(name).text("\":");
}

// A time that is not known is null: 0 would be a claim.
void time_field(os::Line& line, const char* name, double seconds) noexcept {
  field(line, name);
  if (seconds > 0)
    line.exact_milliseconds(seconds);
  else
    line.text("null");
}

// An event's common fields. t_ms is on the clock of the trace.
void begin_event(os::Line& line, const char* event) noexcept {
  line.text("{\"event\":\"").text(event).text("\"");
  field(line, "t_ms").fixed(now_ns(), 6);
  field(line, "pid").integer(getpid());
}

void append_bytes(os::Line& line, std::uint64_t bytes) noexcept {
  // tenths of a MiB; a count of bytes fills 64 bits only after centuries, so the product may not overflow
  line.fixed(static_cast<std::int64_t>(bytes / 1024 * 10 / 1024), 1).text(" MiB");
}

}  // namespace

void describe_call(os::Line& line, const CallRecord& r) noexcept {
  const GemmCall& c = r.call;
  line.text("gemmhoist: ").text(r.spelling).character(' ');
  line.character(to_char(c.trans_a)).character(to_char(c.trans_b));
  line.text(" m=").integer(c.m).text(" n=").integer(c.n).text(" k=").integer(c.k);
  line.character(' ').text(r.route).text(" (").text(r.reason).character(')');
  if (r.measured_s > 0) line.character(' ').milliseconds(r.measured_s).text(" ms");
  append_prediction(line, r);
  if (r.kernel[0] != '\0') {
    line.text(", kernel ");
    if (r.kernel_s > 0) line.milliseconds(r.kernel_s).text(" ms ");
    line.text(r.kernel);
  }
  if (r.range_tiles_fp32 > 0)
    line.text(", tiles in fp32 ").integer(r.range_tiles_fp32).text(" of ").integer(r.range_tiles);
}

void encode_call(os::Line& line, const CallRecord& r) noexcept {
  const GemmCall& c = r.call;
  begin_event(line, "call");
  field(line, "tid").integer(gettid());
  field(line, "spelling").json(r.spelling);
  field(line, "trans").character('"').character(to_char(c.trans_a)).character(to_char(c.trans_b));
  line.character('"');
  field(line, "m").integer(c.m);
  field(line, "n").integer(c.n);
  field(line, "k").integer(c.k);
  field(line, "alpha").real(c.alpha);
  field(line, "beta").real(c.beta);
  field(line, "lda").integer(c.lda);
  field(line, "ldb").integer(c.ldb);
  field(line, "ldc").integer(c.ldc);
  field(line, "route").json(r.route);
  field(line, "reason").json(r.reason);
  field(line, "kernel").json(r.kernel);
  time_field(line, "measured_ms", r.measured_s);
  time_field(line, "predicted_gpu_ms", r.predicted_gpu_s);
  time_field(line, "predicted_cpu_ms", r.predicted_cpu_s);
  time_field(line, "submit_ms", r.submit_s);
  time_field(line, "kernel_ms", r.kernel_s);
  field(line, "range_tiles").integer(r.range_tiles);
  field(line, "range_tiles_fp32").integer(r.range_tiles_fp32);
  line.character('}');
}

void encode_summary(os::Line& line) noexcept {
  begin_event(line, "summary");
  for (int i = 0; i < static_cast<int>(Counter::count_); ++i) {
    const auto counter = static_cast<Counter>(i);
    field(line, name(counter)).count(total(counter));
  }
  line.character('}');
}

void describe_summary(os::Line& line, int index) noexcept {
  const auto put = [&line](const char* before, Counter counter, const char* after) {
    line.text(before).count(total(counter)).text(after);
  };
  line.text("gemmhoist: ");
  switch (index) {
    case 0: {
      const std::uint64_t cpu = total(Counter::calls_cpu), gpu = total(Counter::calls_gpu);
      const std::uint64_t rescued = total(Counter::calls_rescued);
      line.text("products ").count(cpu + gpu + rescued).text(": gpu ").count(gpu).text(", cpu ").count(cpu);
      line.text(", begun on the gpu and finished on the cpu ").count(rescued);
      put("; trivial calls ", Counter::calls_trivial, "");
      put(", illegal ", Counter::calls_illegal, "");
      break;
    }
    case 1:
      put("entries: cblas ", Counter::calls_cblas, "");
      put(", fortran ", Counter::calls_fortran, "");
      put(", 64-bit cblas ", Counter::calls_cblas64, "");
      put(", 64-bit fortran ", Counter::calls_fortran64, "");
      break;
    default:
      put("gpu: starts ", Counter::gpu_starts, "");
      put(", failures ", Counter::gpu_failures, "");
      put(", tiles ", Counter::tiles_gpu, "");
      put(", tiles rescued ", Counter::tiles_rescued, "");
      put(", bf16x6 tiles ", Counter::range_tiles, "");
      put(", in fp32 ", Counter::range_tiles_fp32, "");
      line.text(", to device ");
      append_bytes(line, total(Counter::bytes_h2d));
      line.text(", back ");
      append_bytes(line, total(Counter::bytes_d2h));
      break;
  }
}

}  // namespace gemmhoist::observe
