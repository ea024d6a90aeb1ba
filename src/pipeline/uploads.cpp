// Uploads: stored operand -> (pinned slot) -> panel, or -> landing slot -> transpose -> panel; and where the
// plan has images, panel -> image.
#include <algorithm>

#include "core/find_kernel.hpp"
#include "pipeline/execution.hpp"

namespace gemmhoist::pipeline {
namespace {

using device::Stream;

constexpr std::int64_t kElement = sizeof(float);

// A landed chunk that must be cut along k still has this many lines: the transpose then writes whole 128-byte
// lines of the panel.
constexpr std::int64_t kLeastTransposedLines = 32;

// The first chunk is cut in four: nothing else runs before the first of them is on the device.
constexpr std::int64_t kFirstChunkShare = 4;
constexpr std::int64_t kLeastFirstChunk = (256 << 10) / kElement;

}  // namespace

struct Uploads::Source {
  const float* data;
  std::int64_t ld;
  plan::Range span;  // of m or n
  bool k_outer, pinned;
};

Uploads::Source Uploads::source_of(const plan::Step& step) const noexcept {
  const Context& context = context_;
  const GemmCall& call = context.job.call;
  const bool outer = k_outer(call, step.operand);
  if (step.operand == plan::Operand::a) return {call.a, call.lda, step.rows, outer, context.a_pinned};
  return {call.b, call.ldb, step.cols, outer, context.b_pinned};
}

void Uploads::prepare() {
  const plan::Plan& plan = context_.plan;
  chunks_.clear();
  slots_.assign(static_cast<std::size_t>(plan.h2d_slots), Slot{});
  next_fill_ = next_issue_ = filled_ = issued_ = landed_ = 0;
  begun_ = -1;
  bytes_ = 0;
  by_prepare_stream_ = needs_landing(context_.job.call) || plan.images.used();
  depth_padding_ = 1;
  row_padding_ = col_padding_ = kImageRows;
  const auto kernels = context_.device.kernels();
  for (const plan::Step& step : plan.steps) {
    if (step.kind != plan::StepKind::compute) continue;
    const KernelDescriptor& kernel = kernels[static_cast<std::size_t>(step.kernel)];
    depth_padding_ = std::max<std::int64_t>(depth_padding_, kernel.tile_k);
    row_padding_ = std::max<std::int64_t>(row_padding_, kernel.tile_m);
    col_padding_ = std::max<std::int64_t>(col_padding_, kernel.tile_n);
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].kind == plan::StepKind::upload) add_chunks(static_cast<std::int32_t>(i));
  }
}

void Uploads::add_chunks(std::int32_t index) {
  const plan::Step& step = context_.plan.steps[static_cast<std::size_t>(index)];
  const Source source = source_of(step);
  const std::int64_t pitch = step.operand == plan::Operand::a ? context_.plan.lda : context_.plan.ldb;
  // Lines of the stored operand, and their length.
  const std::int64_t width = source.k_outer ? source.span.extent : step.depth.extent;
  const std::int64_t height = source.k_outer ? step.depth.extent : source.span.extent;
  const std::int64_t limit = context_.chunk_elements();
  std::int64_t begin = 0;
  if (chunks_.empty()) {
    const std::int64_t share = std::min(limit, std::max(limit / kFirstChunkShare, kLeastFirstChunk));
    begin = std::min(height, std::max(limit / width, source.k_outer ? 1 : kLeastTransposedLines));
    add_chunks(index, source, pitch, 0, begin, share);
  }
  if (begin < height) add_chunks(index, source, pitch, begin, height - begin, limit);
}

// Of the lines [begin, begin + height), chunks of at most `limit` elements.
void Uploads::add_chunks(std::int32_t index, const Source& source, std::int64_t pitch, std::int64_t begin,
                         std::int64_t height, std::int64_t limit) {
  const plan::Step& step = context_.plan.steps[static_cast<std::size_t>(index)];
  const Grid grid = source.k_outer ? cut(source.span.extent, height, limit)
                                   : cut(step.depth.extent, height, limit, kLeastTransposedLines);
  for (std::int64_t i = 0; i < grid.parts(); ++i) {
    Part part = pipeline::part(grid, i);
    part.y += begin;
    const std::int64_t along_span = source.k_outer ? part.x : part.y;
    const std::int64_t along_depth = source.k_outer ? part.y : part.x;
    const plan::Range span{source.span.begin + along_span, 0};
    const std::int64_t depth = step.depth.begin + along_depth;
    Chunk chunk{};
    chunk.step = index;
    chunk.staged = !source.pinned;
    chunk.landing = !source.k_outer;
    chunk.source = source.k_outer ? source.data + span.begin + depth * source.ld
                                  : source.data + depth + span.begin * source.ld;
    chunk.source_pitch = source.ld;
    chunk.width = part.width;
    chunk.height = part.height;
    chunk.target = panel(context_, step, step.operand, span, depth);
    chunk.target_pitch = pitch;
    chunks_.push_back(chunk);
    bytes_ += part.width * part.height * kElement;
  }
}

Status Uploads::slot_is_free(std::size_t slot, bool& free) noexcept {
  Slot& state = slots_[slot];
  free = !state.busy;
  if (free || !state.issued) return {};
  device::EventState reached{};
  GEMMHOIST_RETURN_IF_FAILED(context_.device.query(Events::end(Events::kH2d, slot), reached));
  if (reached == device::EventState::pending) return {};
  trace_slot(slot);
  state = Slot{};
  free = true;
  return {};
}

void Uploads::trace_slot(std::size_t slot) noexcept {
  if (!context_.traced) return;
  context_.add_span(Events::begin(Events::kH2d, slot), Events::end(Events::kH2d, slot), "H2D stream", 0,
                    "upload", slots_[slot].bytes);
}

void Uploads::trace_rest() noexcept {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].issued) trace_slot(slot);
  }
}

// Slots are taken in turn by chunks in turn. A chunk that needs no staging takes its turn too, without using
// the slot's memory: that bounds how many copies from the caller's own memory are queued at any time, and so
// how long they go on reading it after a call was taken back.
Status Uploads::publish(bool& progressed) noexcept {
  while (next_fill_ < chunks_.size()) {
    const std::size_t slot = next_fill_ % slots_.size();
    bool free = false;
    GEMMHOIST_RETURN_IF_FAILED(slot_is_free(slot, free));
    if (!free) return {};
    Chunk& chunk = chunks_[next_fill_];
    if (chunk.staged) {
      CopyTask task;
      task.kind = CopyKind::fill;
      task.gate = &context_.job.gate;
      task.source = chunk.source;
      task.source_pitch = chunk.source_pitch;
      task.destination = context_.h2d_slots + static_cast<std::int64_t>(slot) * context_.chunk_elements();
      task.destination_pitch = chunk.width;
      task.pieces = cut_pieces(chunk.width, chunk.height, context_.piece_elements());
      if (!context_.publish(task, chunk.ticket)) return {};
    }
    slots_[slot] = {true, false, chunk.width * chunk.height * kElement};
    ++next_fill_;
    progressed = true;
  }
  return {};
}

Status Uploads::issue(std::int32_t index, bool& progressed, bool& done) noexcept {
  const plan::Step& step = context_.plan.steps[static_cast<std::size_t>(index)];
  done = false;
  if (begun_ != index) {
    GEMMHOIST_RETURN_IF_FAILED(begin_step(step));
    begun_ = index;
    progressed = true;
  }
  while (next_issue_ < chunks_.size() && chunks_[next_issue_].step == index) {
    Chunk& chunk = chunks_[next_issue_];
    if (next_issue_ >= next_fill_) return {};
    if (chunk.staged && !context_.queue.complete(chunk.ticket)) return {};
    GEMMHOIST_RETURN_IF_FAILED(issue_chunk(chunk));
    ++next_issue_;
    progressed = true;
    if (next_issue_ < chunks_.size() && chunks_[next_issue_].step == index) return {};  // see issue_step
  }
  GEMMHOIST_RETURN_IF_FAILED(end_step(index));
  done = true;
  return {};
}

// Who writes panels waits for those that still read their former content. A plan names these readers once,
// before the first upload into the buffers, and counts on the order of uploads for the rest; where panels are
// written on two streams, both wait.
Status Uploads::begin_step(const plan::Step& step) noexcept {
  for (const std::int32_t before : step.after) {
    const device::Event event = Events::end(Events::kSteps, static_cast<std::size_t>(before));
    GEMMHOIST_RETURN_IF_FAILED(context_.device.wait(Stream::h2d, event));
    if (by_prepare_stream_) GEMMHOIST_RETURN_IF_FAILED(context_.device.wait(Stream::prepare, event));
  }
  return zero_padding(step, k_outer(context_.job.call, step.operand) ? Stream::h2d : Stream::prepare);
}

// Rows of the panel from the slice's depth up to a whole k step are zero, in both operands: what a former
// call left in this memory may be NaN, and NaN * 0 is NaN.
Status Uploads::zero_padding(const plan::Step& step, Stream stream) noexcept {
  const bool is_a = step.operand == plan::Operand::a;
  const plan::Range& span = is_a ? step.rows : step.cols;
  const std::int64_t pitch = (is_a ? context_.plan.lda : context_.plan.ldb) * kElement;
  const std::int64_t padded =
      std::min(round_up(step.depth.extent, depth_padding_), context_.plan.depth_padded);
  if (padded <= step.depth.extent) return {};
  return context_.device.fill_zero(
      stream, panel(context_, step, step.operand, span, step.depth.end()), static_cast<std::size_t>(pitch),
      static_cast<std::size_t>(span.extent * kElement), static_cast<std::size_t>(padded - step.depth.extent));
}

// A compute waits for the last upload that it needs, and for no other: where some panels come through
// `prepare`, the steps' events are all recorded there, so that each stands for all uploads before it.
Status Uploads::end_step(std::int32_t index) noexcept {
  const auto step = static_cast<std::size_t>(index);
  if (!by_prepare_stream_) return context_.record(Events::end(Events::kSteps, step), Stream::h2d);
  if (k_outer(context_.job.call, context_.plan.steps[step].operand)) {
    GEMMHOIST_RETURN_IF_FAILED(context_.record(Events::begin(Events::kSteps, step), Stream::h2d));
    GEMMHOIST_RETURN_IF_FAILED(context_.device.wait(Stream::prepare, Events::begin(Events::kSteps, step)));
  }
  if (context_.plan.images.used()) GEMMHOIST_RETURN_IF_FAILED(make_image(context_.plan.steps[step]));
  return context_.record(Events::end(Events::kSteps, step), Stream::prepare);
}

// A panel ends at a whole tile, or at its block's edge, where its image is padded to one.
Status Uploads::make_image(const plan::Step& step) noexcept {
  const plan::Plan& plan = context_.plan;
  const bool is_a = step.operand == plan::Operand::a;
  const plan::Range& span = is_a ? step.rows : step.cols;
  const PanelImage image = panel_image(context_, step, step.operand, span);
  PrepareKernelParams params{};
  params.source = reinterpret_cast<const float*>(panel(context_, step, step.operand, span, step.depth.begin));
  params.image = reinterpret_cast<void*>(image.units);
  params.ranges = reinterpret_cast<MagnitudeRange*>(image.ranges);
  params.row_stride = 1;
  params.k_stride = is_a ? plan.lda : plan.ldb;
  params.unit_pitch = plan.images.unit_pitch;
  params.rows = static_cast<std::int32_t>(span.extent);
  params.k = static_cast<std::int32_t>(step.depth.extent);
  params.padded_rows = static_cast<std::int32_t>(round_up(span.extent, is_a ? row_padding_ : col_padding_));
  params.padded_k = static_cast<std::int32_t>(round_up(step.depth.extent, kImageK));
  const auto kernels = context_.device.kernels();
  return context_.device.launch(Stream::prepare, kernels[static_cast<std::size_t>(plan.images.prepare)],
                                params);
}

Status Uploads::issue_chunk(Chunk& chunk) noexcept {
  const std::size_t slot = next_issue_ % slots_.size();
  device::Device& device = context_.device;
  if (!chunk.landing) {
    GEMMHOIST_RETURN_IF_FAILED(copy_to_device(chunk, slot, chunk.target, chunk.target_pitch));
  } else {
    const auto ring = static_cast<std::size_t>(landing_slots(context_.plan));
    const std::size_t place = landed_ % ring;
    if (landed_ >= ring) GEMMHOIST_RETURN_IF_FAILED(device.wait(Stream::h2d, Events::landing(place)));
    const device::DevicePointer landed = context_.arena.at(DeviceArena::landing) +
                                         place * static_cast<std::uint64_t>(context_.plan.chunk_bytes);
    GEMMHOIST_RETURN_IF_FAILED(copy_to_device(chunk, slot, landed, chunk.width));
    GEMMHOIST_RETURN_IF_FAILED(device.wait(Stream::prepare, Events::end(Events::kH2d, slot)));
    TransposeKernelParams params{};
    params.source = reinterpret_cast<const float*>(landed);
    params.destination = reinterpret_cast<float*>(chunk.target);
    params.ld_source = chunk.width;
    params.ld_destination = chunk.target_pitch;
    params.rows = static_cast<std::int32_t>(chunk.height);
    params.cols = static_cast<std::int32_t>(chunk.width);
    const auto kernels = device.kernels();
    const std::int32_t transpose = find_kernel(kernels, KernelRole::transpose, Precision::fp32);
    if (transpose < 0) return Status(StatusCode::unsupported, "no transpose kernel");
    GEMMHOIST_RETURN_IF_FAILED(
        device.launch(Stream::prepare, kernels[static_cast<std::size_t>(transpose)], params));
    GEMMHOIST_RETURN_IF_FAILED(context_.record(Events::landing(place), Stream::prepare));
    ++landed_;
  }
  slots_[slot].issued = true;
  return {};
}

// From the slot, or straight from the caller's pinned memory.
Status Uploads::copy_to_device(const Chunk& chunk, std::size_t slot, device::DevicePointer target,
                               std::int64_t target_pitch) noexcept {
  device::Copy2D copy;
  if (chunk.staged) {
    copy.host = context_.h2d_slots + static_cast<std::int64_t>(slot) * context_.chunk_elements();
    copy.host_pitch = static_cast<std::size_t>(chunk.width * kElement);
  } else {
    copy.host = const_cast<float*>(chunk.source);  // only read: an upload
    copy.host_pitch = static_cast<std::size_t>(chunk.source_pitch * kElement);
  }
  copy.device = target;
  copy.device_pitch = static_cast<std::size_t>(target_pitch * kElement);
  copy.width = static_cast<std::size_t>(chunk.width * kElement);
  copy.height = static_cast<std::size_t>(chunk.height);
  if (context_.traced) {
    GEMMHOIST_RETURN_IF_FAILED(context_.record(Events::begin(Events::kH2d, slot), Stream::h2d, true));
  }
  GEMMHOIST_RETURN_IF_FAILED(context_.device.copy_h2d(Stream::h2d, copy));
  return context_.record(Events::end(Events::kH2d, slot), Stream::h2d, context_.traced);
}

}  // namespace gemmhoist::pipeline
