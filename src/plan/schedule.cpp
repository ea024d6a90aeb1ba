// Growing L: panels of A and B go up alternately, always one of the side that has less of its extent on the
// device, since a panel of that side enables the more of C a byte. When one side is a single panel it goes
// first and stays, and the other streams. C is never uploaded: the device makes alpha op(A) op(B) alone and
// beta is applied on the host during the write-back, which saves 4mn bytes of the link.
#include "plan/schedule.hpp"

#include <algorithm>

#include "core/checked.hpp"

namespace gemmhoist::plan {
namespace {

double area_bytes(std::int64_t x, std::int64_t y) noexcept {
  return 4.0 * static_cast<double>(x) * static_cast<double>(y);
}

Images images_of(const KernelSet& kernels) noexcept {
  Images images;
  images.prepare = kernels.prepare;
  images.leftover = kernels.leftover;
  return images;
}

double total_bytes(const PlanInput& input, const Cutting& cutting) noexcept {
  const double row_blocks = static_cast<double>(divide_up(input.m, cutting.block_m));
  const double col_blocks = static_cast<double>(divide_up(input.n, cutting.block_n));
  return area_bytes(input.m, input.k) * col_blocks + area_bytes(input.k, input.n) * row_blocks +
         area_bytes(input.m, input.n);
}

// Parts of a strip no longer than a launch allows, and about `wanted` of them: a strip is cut along its
// longer side, so that the pieces' rows stay long.
void cut_strip(Range range, std::int64_t align, std::int64_t limit, std::int64_t wanted,
               std::vector<Range>& parts) {
  // Rounding to whole tiles may lengthen a part, hence the limit is met with one tile to spare.
  const std::int64_t safe = std::max(align, limit - align);
  cut(range, align, std::max(wanted, divide_up(range.extent, safe)), Taper::none, parts);
}

}  // namespace

double step_bound(const Cutting& cutting, const PlanInput& input) noexcept {
  const double blocks = static_cast<double>(divide_up(input.m, cutting.block_m)) *
                        static_cast<double>(divide_up(input.n, cutting.block_n));
  const double slices = static_cast<double>(divide_up(input.k, cutting.slice_k));
  const double panels = static_cast<double>(cutting.panels_a + cutting.panels_b);
  // A strip is cut further where a launch would be too large.
  constexpr double kLargestLaunch = 65535.0 * 64;
  const double parts = (1 + static_cast<double>(cutting.block_m) / kLargestLaunch) *
                       (1 + static_cast<double>(cutting.block_n) / kLargestLaunch);
  const double pieces = static_cast<double>(cutting.pieces) * parts;
  return blocks * panels * (slices * (1 + pieces) + pieces);
}

Schedule::Schedule(const PlanInput& input, const KernelSet& kernels, const Staging& staging,
                   const Cutting& cutting, std::vector<Step>* steps, std::vector<Block>* blocks)
    : input_(input),
      kernels_(kernels),
      cutting_(cutting),
      timeline_(input, staging, total_bytes(input, cutting), images_of(kernels)),
      steps_(steps),
      blocks_(blocks) {
  ends_.reserve(static_cast<std::size_t>(std::min(step_bound(cutting, input), 65536.0)));
}

// Blocks in snake order: the panels that the next block shares with this one are then still on the device.
void Schedule::walk() {
  const std::int64_t row_blocks = divide_up(input_.m, cutting_.block_m);
  const std::int64_t col_blocks = divide_up(input_.n, cutting_.block_n);
  const std::int64_t outer = cutting_.rows_outer ? row_blocks : col_blocks;
  const std::int64_t inner = cutting_.rows_outer ? col_blocks : row_blocks;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const std::int64_t turned = o % 2 == 0 ? i : inner - 1 - i;
      const std::int64_t row = (cutting_.rows_outer ? o : turned) * cutting_.block_m;
      const std::int64_t col = (cutting_.rows_outer ? turned : o) * cutting_.block_n;
      walk_block({{row, std::min(cutting_.block_m, input_.m - row)},
                  {col, std::min(cutting_.block_n, input_.n - col)}});
    }
  }
}

void Schedule::walk_block(const Block& block) {
  if (blocks_ != nullptr) blocks_->push_back(block);
  waited_for_c_.fill(false);
  Place place;
  place.block = block;
  place.index = next_block_++;
  place.c_buffer = place.index % cutting_.c_buffers;
  for (std::int64_t begin = 0; begin < input_.k; begin += cutting_.slice_k) {
    place.depth = {begin, std::min(cutting_.slice_k, input_.k - begin)};
    place.first_slice = begin == 0;
    place.last_slice = place.depth.end() == input_.k;
    place.set = next_set_;
    next_set_ = (next_set_ + 1) % cutting_.panel_buffers;
    walk_slice(place);
  }
  last_write_back_[place.c_buffer] = pending_write_back_;
}

void Schedule::walk_slice(const Place& place) {
  PanelSet& set = sets_[place.set];
  const bool same_depth = set.depth == place.depth;
  const bool has_a = same_depth && set.a_rows == place.block.rows;
  const bool has_b = same_depth && set.b_cols == place.block.cols;
  cut(place.block.rows, kernels_.align_m, cutting_.panels_a, cutting_.taper, a_panels_);
  cut(place.block.cols, kernels_.align_n, cutting_.panels_b, cutting_.taper, b_panels_);
  std::int64_t rows = has_a ? place.block.rows.extent : 0;
  std::int64_t cols = has_b ? place.block.cols.extent : 0;
  std::size_t a = has_a ? a_panels_.size() : 0, b = has_b ? b_panels_.size() : 0;
  // All slices of a block count their streams from the same one: their rectangles are alike, so that each
  // one's launches follow one another in one stream. The next block counts from the next stream, so that its
  // first tiles fill the SMs that this one's last wave leaves idle.
  rectangle_ = place.index;
  overwritten_ = set.last_compute;
  set.last_compute.fill(-1);
  const bool b_first = b_panels_.size() == 1 && a_panels_.size() > 1;
  while (a < a_panels_.size() || b < b_panels_.size()) {
    const bool a_next = b == b_panels_.size() ||
                        (a < a_panels_.size() && (rows < cols || (rows == cols && !(b_first && b == 0))));
    if (a_next) {
      const Range panel = a_panels_[a++];
      upload(place, Operand::a, panel);
      rows += panel.extent;
      if (cols > 0) strip(place, panel, {place.block.cols.begin, cols});
    } else {
      const Range panel = b_panels_[b++];
      upload(place, Operand::b, panel);
      cols += panel.extent;
      if (rows > 0) strip(place, {place.block.rows.begin, rows}, panel);
    }
  }
  set.a_rows = place.block.rows;
  set.b_cols = place.block.cols;
  set.depth = place.depth;
}

void Schedule::depend(Step& step, std::int32_t before, double& ready) {
  if (before < 0) return;
  ready = std::max(ready, timeline_.time(ends_[before]));
  if (steps_ != nullptr) step.after.push_back(before);
}

std::int32_t Schedule::add(Step& step, Timeline::End end) {
  const auto index = static_cast<std::int32_t>(ends_.size());
  ends_.push_back(end);
  if (steps_ != nullptr) steps_->push_back(std::move(step));
  return index;
}

// The first upload into a set waits for the last launch on each stream that read the set; the others follow
// it in their stream.
void Schedule::upload(const Place& place, Operand operand, Range range) {
  PanelSet& set = sets_[place.set];
  Step step;
  step.kind = StepKind::upload;
  step.operand = operand;
  (operand == Operand::a ? step.rows : step.cols) = range;
  step.depth = place.depth;
  step.buffer = place.set;
  step.block = place.index;
  double ready = 0;
  for (std::int32_t& reader : overwritten_) {
    depend(step, reader, ready);
    reader = -1;
  }
  const bool pinned = operand == Operand::a ? input_.a_pinned : input_.b_pinned;
  const Timeline::End end = timeline_.upload(area_bytes(range.extent, place.depth.extent), !pinned,
                                             lands_k_contiguous(operand, input_), ready);
  set.last_upload = add(step, end);
}

void Schedule::strip(const Place& place, Range rows, Range cols) {
  // Under half a MiB a piece costs more in transfers than it gains in overlap.
  constexpr double kSmallestPiece = 512.0 * 1024;
  const double worthwhile = area_bytes(rows.extent, cols.extent) / kSmallestPiece;
  const auto wanted = static_cast<std::int64_t>(
      std::clamp(worthwhile, 1.0, static_cast<double>(std::max<std::int64_t>(cutting_.pieces, 1))));
  const bool by_cols = cols.extent >= rows.extent;
  cut_strip(rows, kernels_.align_m, kernels_.max_rows, by_cols ? 1 : wanted, row_parts_);
  cut_strip(cols, kernels_.align_n, kernels_.max_cols, by_cols ? wanted : 1, col_parts_);
  for (const Range& row : row_parts_) {
    for (const Range& col : col_parts_) piece(place, row, col);
  }
}

// Launches of several streams share the SMs by turns, not in order: at n = 8192 four strips at once each took
// four times its own time, and nearly all of them came home after the last one. Launches that fill half of
// the SMs or more therefore have two streams, so that the next one fills what a last wave leaves idle;
// smaller ones four.
std::int32_t Schedule::streams_for(Range rows, Range cols) const {
  const Work work = work_of(input_.kernels[kernels_.index[0]], rows.extent, cols.extent, 1, *input_.profile);
  return 2 * work.jobs >= model_sms(*input_.profile) ? 2 : kComputeStreams;
}

void Schedule::piece(const Place& place, Range rows, Range cols) {
  PanelSet& set = sets_[place.set];
  const std::int32_t stream = rectangle_++ % streams_for(rows, cols);
  Step step;
  step.kind = StepKind::compute;
  step.rows = rows;
  step.cols = cols;
  step.depth = place.depth;
  step.accumulate = !place.first_slice;
  step.last_slice = place.last_slice;
  step.stream = stream;
  step.buffer = place.set;
  step.c_buffer = place.c_buffer;
  step.block = place.index;
  if (kernels_.leftover >= 0) {
    step.marks = next_mark_;
    next_mark_ += divide_up(rows.extent, kImageRows) * divide_up(cols.extent, kImageRows);
  }
  double ready = 0;
  if (set.last_upload > waited_for_upload_[stream]) {
    depend(step, set.last_upload, ready);
    waited_for_upload_[stream] = set.last_upload;
  }
  if (!waited_for_c_[stream]) {
    depend(step, last_write_back_[place.c_buffer], ready);
    waited_for_c_[stream] = true;
  }
  step.kernel = choose_kernel(rows, cols, place.depth, stream, ready);
  const Work work =
      work_of(input_.kernels[step.kernel], rows.extent, cols.extent, place.depth.extent, *input_.profile);
  busy_s_ += work.busy_seconds();
  const std::int32_t compute = add(step, timeline_.compute(work, stream, ready));
  set.last_compute[stream] = compute;
  if (!place.last_slice) return;

  Step home;
  home.kind = StepKind::write_back;
  home.rows = rows;
  home.cols = cols;
  home.c_buffer = place.c_buffer;
  home.block = place.index;
  ready = 0;
  depend(home, compute, ready);
  const Timeline::End end = timeline_.write_back(area_bytes(rows.extent, cols.extent), ready);
  pending_write_back_ = add(home, end);
}

// Waves and sharing decide: the kernel whose launch ends first among the tiles already queued, less what its
// smaller tile wastes of the SMs.
std::int32_t Schedule::choose_kernel(Range rows, Range cols, Range depth, int stream, double ready) {
  std::int32_t best = kernels_.index[0];
  if (kernels_.count == 1) return best;
  double best_score = 0;
  for (int i = 0; i < kernels_.count; ++i) {
    const KernelDescriptor& kernel = input_.kernels[kernels_.index[i]];
    const Work work = work_of(kernel, rows.extent, cols.extent, depth.extent, *input_.profile);
    const double waste = cutting_.thrift * work.busy_seconds() / model_sms(*input_.profile);
    const double score = timeline_.peek(work, stream, ready) + waste;
    if (i == 0 || score < best_score) {
      best = kernels_.index[i];
      best_score = score;
    }
  }
  return best;
}

}  // namespace gemmhoist::plan
