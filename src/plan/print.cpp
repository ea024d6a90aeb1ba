#include <cstdarg>
#include <cstdio>

#include "plan/plan.hpp"

namespace gemmhoist::plan {
namespace {

void append(std::string& text, const char* format, ...) __attribute__((format(printf, 2, 3)));
void append(std::string& text, const char* format, ...) {
  char line[256];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

// A printable integer, whatever int64_t is.
long long ll(std::int64_t x) noexcept {
  return x;
}

void append(std::string& text, const char* name, const Range& range) {
  append(text, " %s [%lld,%lld)", name, ll(range.begin), ll(range.end()));
}

void append(std::string& text, const Step& step, bool leftover) {
  switch (step.kind) {
    case StepKind::upload: {
      const bool is_a = step.operand == Operand::a;
      append(text, " upload %c", is_a ? 'A' : 'B');
      append(text, is_a ? "m" : "n", is_a ? step.rows : step.cols);
      append(text, "k", step.depth);
      append(text, " set %d", step.buffer);
      break;
    }
    case StepKind::compute:
      append(text, " compute");
      append(text, "m", step.rows);
      append(text, "n", step.cols);
      append(text, "k", step.depth);
      append(text, " kernel %d stream %d set %d c %d%s%s", step.kernel, step.stream, step.buffer,
             step.c_buffer, step.accumulate ? " accumulate" : "", step.last_slice ? " last" : "");
      if (leftover) append(text, " marks %lld", ll(step.marks));
      break;
    case StepKind::write_back:
      append(text, " write_back");
      append(text, "m", step.rows);
      append(text, "n", step.cols);
      append(text, " c %d", step.c_buffer);
      break;
  }
  append(text, " block %d", step.block);
  const char* separator = " after ";
  for (const std::int32_t before : step.after) {
    append(text, "%s%d", separator, before);
    separator = ",";
  }
}

}  // namespace

std::string to_string(const Plan& plan) {
  std::string text;
  append(text, "plan blocks %zu steps %zu lda %lld ldb %lld ldc %lld depth %lld", plan.blocks.size(),
         plan.steps.size(), ll(plan.lda), ll(plan.ldb), ll(plan.ldc), ll(plan.depth_padded));
  append(text, " sets %d c_buffers %d device %lld", plan.panel_buffers, plan.c_buffers,
         ll(plan.device_bytes));
  append(text, " chunk %lld piece %lld slots %d+%d", ll(plan.chunk_bytes), ll(plan.piece_bytes),
         plan.h2d_slots, plan.d2h_slots);
  if (plan.images.used()) {
    append(text, " images prepare %d leftover %d units %lld+%lld pitch %lld marks %lld", plan.images.prepare,
           plan.images.leftover, ll(plan.images.a_units), ll(plan.images.b_units), ll(plan.images.unit_pitch),
           ll(plan.images.mark_bytes));
  }
  // Microseconds, whole: the last digits of a model are noise, and integers print alike in every locale.
  append(text, " predicted_us %lld kernel_us %lld\n", static_cast<long long>(plan.predicted_s * 1e6 + 0.5),
         static_cast<long long>(plan.predicted_kernel_s * 1e6 + 0.5));
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    append(text, "%zu", i);
    append(text, plan.steps[i], plan.images.ranged());
    text += '\n';
  }
  return text;
}

}  // namespace gemmhoist::plan
