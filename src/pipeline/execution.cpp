#include "pipeline/execution.hpp"

#include <algorithm>

#include "observe/trace.hpp"
#include "os/os.hpp"
#include "pipeline/host_copy.hpp"

namespace gemmhoist::pipeline {
namespace {

constexpr std::int64_t kElement = sizeof(float);

// What the worker does when nothing is ready. On a large host it polls, since an event that is found some
// microseconds late idles the link; a small one needs its CPUs for the copies. Then it sleeps, woken by the
// copy threads, or for as long as a transfer of some hundred KiB takes.
constexpr std::int64_t kPollNs = 2'000'000;
constexpr std::int64_t kPollFewCpusNs = 3'000;
constexpr std::int64_t kNapNs = 20'000;
constexpr std::int64_t kNapFewCpusNs = 60'000;

}  // namespace

bool Context::publish(const CopyTask& task, CopyQueue::Ticket& ticket) noexcept {
  if (!queue.publish(task, ticket)) return false;
  job.nudge();
  return true;
}

Status Context::record(device::Event event, device::Stream stream, bool timed_event) noexcept {
  device.keep_time(timed_event);
  return device.record(event, stream);
}

void Context::add_span(device::Event begin, device::Event end, const char* row, int index, const char* name,
                       std::int64_t bytes) noexcept {
  double begin_s = 0, end_s = 0;
  // A trace with a hole is better than a call lost for its trace.
  if (!device.elapsed_seconds(Events::kBase, begin, begin_s).ok()) return;
  if (!device.elapsed_seconds(Events::kBase, end, end_s).ok()) return;
  observe::add_span({row, device.properties().ordinal, index, name,
                     base_ns + static_cast<std::int64_t>(begin_s * 1e9),
                     base_ns + static_cast<std::int64_t>(end_s * 1e9), bytes});
}

device::DevicePointer panel(const Context& context, const plan::Step& step, plan::Operand operand,
                            const plan::Range& span, std::int64_t depth) noexcept {
  const plan::Plan& plan = context.plan;
  const plan::Block& block = plan.blocks[static_cast<std::size_t>(step.block)];
  const bool is_a = operand == plan::Operand::a;
  const std::int64_t origin = is_a ? block.rows.begin : block.cols.begin;
  const std::int64_t element =
      span.begin - origin + (depth - step.depth.begin) * (is_a ? plan.lda : plan.ldb);
  const std::int64_t buffer = step.buffer * (is_a ? plan.a_bytes : plan.b_bytes);
  return context.arena.at(is_a ? DeviceArena::panels_a : DeviceArena::panels_b) +
         static_cast<std::uint64_t>(buffer + element * kElement);
}

PanelImage panel_image(const Context& context, const plan::Step& step, plan::Operand operand,
                       const plan::Range& span) noexcept {
  const plan::Plan& plan = context.plan;
  const plan::Images& images = plan.images;
  const plan::Block& block = plan.blocks[static_cast<std::size_t>(step.block)];
  const bool is_a = operand == plan::Operand::a;
  const std::int64_t row = (span.begin - (is_a ? block.rows.begin : block.cols.begin)) / kImageRows;
  const auto unit = static_cast<std::uint64_t>(step.buffer * (is_a ? images.a_units : images.b_units) +
                                               row * images.unit_pitch);
  PanelImage image;
  image.units = context.arena.at(is_a ? DeviceArena::images_a : DeviceArena::images_b) +
                unit * static_cast<std::uint64_t>(images.unit_bytes);
  if (images.ranged()) {
    image.ranges = context.arena.at(is_a ? DeviceArena::ranges_a : DeviceArena::ranges_b) +
                   unit * sizeof(MagnitudeRange);
  }
  return image;
}

Grid cut_pieces(std::int64_t width, std::int64_t height, std::int64_t piece_elements) noexcept {
  const std::int64_t least = divide_up(width * height, CopyQueue::kMostPieces / 4);
  return cut(width, height, std::max(piece_elements, least));
}

Status Execution::run(Ledger& ledger) {
  issued_.assign(context_.plan.steps.size(), 0);
  next_step_ = 0;
  uploads_.prepare();
  write_backs_.prepare(ledger);
  choose_main_kernel();
  context_.job.ledger.store(&ledger, std::memory_order_release);
  GEMMHOIST_RETURN_IF_FAILED(walk());
  context_.job.leftovers = {leftovers_.count(), leftovers_.of()};
  context_.job.call_times.submit_s = 1e-9 * static_cast<double>(submit_ns_);
  uploads_.trace_rest();
  return context_.timed ? read_kernel_times() : Status();
}

Status Execution::walk() noexcept {
  if (context_.timed || context_.traced) {
    GEMMHOIST_RETURN_IF_FAILED(context_.record(Events::kBase, device::Stream::h2d, true));
    context_.base_ns = observe::now_ns();
  }
  while (next_step_ < context_.plan.steps.size() || !write_backs_.finished() || !leftovers_.finished()) {
    if (context_.job.gate.is_closed()) return Status(StatusCode::cancelled, "call");
    const std::uint32_t completions = context_.queue.completions();
    const std::int64_t begin_ns = observe::now_ns();
    bool progressed = false;
    GEMMHOIST_RETURN_IF_FAILED(uploads_.publish(progressed));
    GEMMHOIST_RETURN_IF_FAILED(issue_step(progressed));
    GEMMHOIST_RETURN_IF_FAILED(write_backs_.advance(issued_, progressed));
    const bool c_is_queued = next_step_ == context_.plan.steps.size() && write_backs_.all_issued();
    GEMMHOIST_RETURN_IF_FAILED(leftovers_.advance(c_is_queued, progressed));
    if (progressed) {
      submit_ns_ += observe::now_ns() - begin_ns;
      idle_since_ns_ = 0;
    } else {
      idle(completions);
    }
  }
  return {};
}

// Steps are issued in the plan's order; only a write-back's copies are left behind, since they wait for
// slots. One step a pass: a worker that issued all that is ready would let freed slots stand empty, and
// results wait on the device (at n = 1024, whose operands are copied before they are issued: 0.2 of 0.6 ms).
Status Execution::issue_step(bool& progressed) noexcept {
  if (next_step_ == context_.plan.steps.size()) return {};
  const plan::Step& step = context_.plan.steps[next_step_];
  const auto index = static_cast<std::int32_t>(next_step_);
  // An event may be waited for only once it is recorded.
  if (step.kind != plan::StepKind::write_back && !all_issued(step.after)) return {};
  switch (step.kind) {
    case plan::StepKind::upload: {
      bool done = false;
      GEMMHOIST_RETURN_IF_FAILED(uploads_.issue(index, progressed, done));
      if (!done) return {};
      issued_[next_step_] = 1;
      break;
    }
    case plan::StepKind::compute:
      GEMMHOIST_RETURN_IF_FAILED(issue_compute(next_step_));
      issued_[next_step_] = 1;
      break;
    case plan::StepKind::write_back:
      write_backs_.enable(index);
      break;
  }
  ++next_step_;
  progressed = true;
  return {};
}

Status Execution::issue_compute(std::size_t index) noexcept {
  const plan::Plan& plan = context_.plan;
  const plan::Step& step = plan.steps[index];
  const plan::Block& block = plan.blocks[static_cast<std::size_t>(step.block)];
  const KernelDescriptor& kernel = context_.device.kernels()[static_cast<std::size_t>(step.kernel)];
  const device::Stream stream = device::compute_stream(step.stream);
  for (const std::int32_t before : step.after) {
    GEMMHOIST_RETURN_IF_FAILED(
        context_.device.wait(stream, Events::end(Events::kSteps, static_cast<std::size_t>(before))));
  }
  GemmKernelParams params{};
  params.a =
      reinterpret_cast<const float*>(panel(context_, step, plan::Operand::a, step.rows, step.depth.begin));
  params.b =
      reinterpret_cast<const float*>(panel(context_, step, plan::Operand::b, step.cols, step.depth.begin));
  const std::int64_t c_element =
      step.rows.begin - block.rows.begin + (step.cols.begin - block.cols.begin) * plan.ldc;
  params.c = reinterpret_cast<float*>(
      context_.arena.at(DeviceArena::results) +
      static_cast<std::uint64_t>(step.c_buffer * plan.c_bytes + c_element * kElement));
  params.lda = plan.lda;
  params.ldb = plan.ldb;
  params.ldc = plan.ldc;
  params.m = static_cast<std::int32_t>(step.rows.extent);
  params.n = static_cast<std::int32_t>(step.cols.extent);
  params.k = static_cast<std::int32_t>(round_up(step.depth.extent, kernel.tile_k));
  // alpha scales the sum over all of k: the last slice applies it to what the others left.
  params.alpha = step.last_slice ? context_.job.call.alpha : 1.0F;
  params.accumulate = step.accumulate ? 1 : 0;
  if (context_.timed)
    GEMMHOIST_RETURN_IF_FAILED(context_.record(Events::begin(Events::kSteps, index), stream, true));
  GEMMHOIST_RETURN_IF_FAILED(launch(step, stream, params));
  return context_.record(Events::end(Events::kSteps, index), stream, context_.timed);
}

// The panels' product, or that of their images and behind it, in fp32, the tiles which it left out.
Status Execution::launch(const plan::Step& step, device::Stream stream,
                         const GemmKernelParams& params) noexcept {
  const plan::Images& images = context_.plan.images;
  const auto kernels = context_.device.kernels();
  const KernelDescriptor& kernel = kernels[static_cast<std::size_t>(step.kernel)];
  if (!images.used()) return context_.device.launch(stream, kernel, params);
  const PanelImage a = panel_image(context_, step, plan::Operand::a, step.rows);
  const PanelImage b = panel_image(context_, step, plan::Operand::b, step.cols);
  PreparedGemmKernelParams prepared{};
  prepared.gemm = params;
  prepared.a_image = reinterpret_cast<const void*>(a.units);
  prepared.b_image = reinterpret_cast<const void*>(b.units);
  prepared.a_ranges = reinterpret_cast<const MagnitudeRange*>(a.ranges);
  prepared.b_ranges = reinterpret_cast<const MagnitudeRange*>(b.ranges);
  prepared.a_unit_pitch = prepared.b_unit_pitch = images.unit_pitch;
  if (images.ranged()) {
    prepared.out_of_range = reinterpret_cast<std::uint8_t*>(context_.arena.at(DeviceArena::marks) +
                                                            static_cast<std::uint64_t>(step.marks));
  }
  GEMMHOIST_RETURN_IF_FAILED(context_.device.launch(stream, kernel, prepared));
  if (images.leftover < 0) return {};
  return context_.device.launch(stream, kernels[static_cast<std::size_t>(images.leftover)], prepared);
}

bool Execution::all_issued(const std::vector<std::int32_t>& steps) const noexcept {
  return std::all_of(steps.begin(), steps.end(),
                     [&](std::int32_t step) { return issued_[static_cast<std::size_t>(step)] != 0; });
}

void Execution::idle(std::uint32_t completions) noexcept {
  if (idle_helps_ && context_.queue.work(CopyQueue::kWorker)) return;
  const bool few = few_cpus_;
  const std::int64_t now = observe::now_ns();
  if (idle_since_ns_ == 0) idle_since_ns_ = now;
  if (now - idle_since_ns_ < (few ? kPollFewCpusNs : kPollNs)) {
    for (int i = 0; i < 16; ++i) pause();
  } else {
    context_.queue.await_completion(completions, now + (few ? kNapFewCpusNs : kNapNs));
  }
}

void Execution::choose_main_kernel() noexcept {
  const auto kernels = context_.device.kernels();
  double most = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    double area = 0;
    for (const plan::Step& step : context_.plan.steps) {
      if (step.kind != plan::StepKind::compute || static_cast<std::size_t>(step.kernel) != i) continue;
      area += static_cast<double>(step.rows.extent) * static_cast<double>(step.cols.extent) *
              static_cast<double>(step.depth.extent);
    }
    if (area > most) {
      most = area;
      context_.job.kernel.store(kernels[i].name, std::memory_order_release);
    }
  }
}

// Time during which some compute step was under way: they overlap, and so may not be added up.
Status Execution::read_kernel_times() {
  struct Interval {
    double begin, end;
  };
  std::vector<Interval> intervals;
  for (std::size_t i = 0; i < context_.plan.steps.size(); ++i) {
    const plan::Step& step = context_.plan.steps[i];
    if (step.kind != plan::StepKind::compute) continue;
    Interval interval{};
    device::Device& device = context_.device;
    GEMMHOIST_RETURN_IF_FAILED(
        device.elapsed_seconds(Events::kBase, Events::begin(Events::kSteps, i), interval.begin));
    GEMMHOIST_RETURN_IF_FAILED(
        device.elapsed_seconds(Events::kBase, Events::end(Events::kSteps, i), interval.end));
    intervals.push_back(interval);
    if (context_.traced) {
      context_.add_span(Events::begin(Events::kSteps, i), Events::end(Events::kSteps, i), "compute stream",
                        step.stream, device.kernels()[static_cast<std::size_t>(step.kernel)].name, 0);
    }
  }
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& x, const Interval& y) { return x.begin < y.begin; });
  double busy = 0, end = 0;
  for (const Interval& interval : intervals) {
    busy += std::max(0.0, interval.end - std::max(interval.begin, end));
    end = std::max(end, interval.end);
  }
  context_.job.call_times.kernel_s = busy;
  return {};
}

}  // namespace gemmhoist::pipeline
