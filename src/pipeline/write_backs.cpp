// Write-backs: C on the device -> pinned slot -> the caller's C, tile by tile.
//
// The device never writes the caller's C itself, not even where it is pinned and beta is zero: a copy that
// the driver has accepted cannot be recalled, and one that ends after a deadline would overwrite what the
// CPU, or the caller, has put there since.
#include <algorithm>

#include "pipeline/execution.hpp"

namespace gemmhoist::pipeline {
namespace {

using device::Stream;

constexpr std::int64_t kElement = sizeof(float);

// The last chunk is cut in four: after the last of them arrives nothing is left to overlap its copy with.
constexpr std::int64_t kLastChunkShare = 4;
constexpr std::int64_t kLeastLastChunk = (256 << 10) / kElement;

device::DevicePointer result(const Context& context, const plan::Step& step, std::int64_t row,
                             std::int64_t col) noexcept {
  const plan::Block& block = context.plan.blocks[static_cast<std::size_t>(step.block)];
  const std::int64_t element = row - block.rows.begin + (col - block.cols.begin) * context.plan.ldc;
  return context.arena.at(DeviceArena::results) +
         static_cast<std::uint64_t>(step.c_buffer * context.plan.c_bytes + element * kElement);
}

}  // namespace

void WriteBacks::prepare(Ledger& ledger) {
  const plan::Plan& plan = context_.plan;
  chunks_.clear();
  enabled_ = issued_ = published_ = retired_ = 0;
  bytes_ = 0;
  std::int32_t last_step = -1;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].kind == plan::StepKind::write_back) last_step = static_cast<std::int32_t>(i);
  }
  std::size_t tiles = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const plan::Step& step = plan.steps[i];
    if (step.kind != plan::StepKind::write_back) continue;
    const auto index = static_cast<std::int32_t>(i);
    const std::size_t first = chunks_.size();
    const std::int64_t limit = context_.chunk_elements();
    std::int64_t whole = step.cols.extent;
    if (index == last_step) {
      const std::int64_t share = std::min(limit, std::max(limit / kLastChunkShare, kLeastLastChunk));
      whole = std::max<std::int64_t>(0, whole - std::max<std::int64_t>(limit / step.rows.extent, 1));
      if (whole > 0) tiles += add_chunks(index, {step.cols.begin, whole}, limit);
      tiles += add_chunks(index, {step.cols.begin + whole, step.cols.extent - whole}, share);
    } else {
      tiles += add_chunks(index, step.cols, limit);
    }
    chunks_[first].first = true;
    chunks_.back().last = true;
  }
  ledger.clear(tiles);
  const GemmCall& call = context_.job.call;
  for (Chunk& chunk : chunks_) {
    const std::int64_t offset = chunk.c - call.c;
    const std::int64_t row = offset % call.ldc, col = offset / call.ldc;
    for (std::int64_t j = 0; j < chunk.pieces.parts(); ++j) {
      const Part part = pipeline::part(chunk.pieces, j);
      Tile* tile = ledger.add({row + part.x, part.width}, {col + part.y, part.height});
      if (j == 0) chunk.tiles = tile;
    }
  }
}

// Columns `cols` of a step in chunks of at most `limit` elements; the number of their tiles.
std::size_t WriteBacks::add_chunks(std::int32_t index, plan::Range cols, std::int64_t limit) {
  const plan::Step& step = context_.plan.steps[static_cast<std::size_t>(index)];
  const Grid grid = cut(step.rows.extent, cols.extent, limit);
  std::size_t tiles = 0;
  for (std::int64_t j = 0; j < grid.parts(); ++j) {
    const Part part = pipeline::part(grid, j);
    Chunk chunk{};
    chunk.step = index;
    const std::int64_t row = step.rows.begin + part.x, col = cols.begin + part.y;
    chunk.source = result(context_, step, row, col);
    chunk.c = context_.job.call.c + row + col * context_.job.call.ldc;
    chunk.width = part.width;
    chunk.height = part.height;
    chunk.pieces = cut_pieces(part.width, part.height, context_.piece_elements());
    tiles += static_cast<std::size_t>(chunk.pieces.parts());
    chunks_.push_back(chunk);
    bytes_ += part.width * part.height * kElement;
  }
  return tiles;
}

void WriteBacks::enable(std::int32_t step) noexcept {
  while (enabled_ < chunks_.size() && chunks_[enabled_].step <= step) ++enabled_;
}

Status WriteBacks::advance(std::vector<char>& issued, bool& progressed) noexcept {
  // Slots are freed first, so that one pass can use them again.
  while (retired_ < published_ && context_.queue.complete(chunks_[retired_].ticket)) {
    ++retired_;
    progressed = true;
  }
  GEMMHOIST_RETURN_IF_FAILED(publish_arrived(progressed));
  return issue(issued, progressed);
}

Status WriteBacks::publish_arrived(bool& progressed) noexcept {
  while (published_ < issued_) {
    Chunk& chunk = chunks_[published_];
    const std::size_t slot = published_ % static_cast<std::size_t>(context_.plan.d2h_slots);
    device::EventState state{};
    GEMMHOIST_RETURN_IF_FAILED(context_.device.query(Events::end(Events::kD2h, slot), state));
    if (state == device::EventState::pending) return {};
    CopyTask task;
    task.kind = CopyKind::write_back;
    task.gate = &context_.job.gate;
    task.source = context_.d2h_slots + static_cast<std::int64_t>(slot) * context_.chunk_elements();
    task.source_pitch = chunk.width;
    task.destination = chunk.c;
    task.destination_pitch = context_.job.call.ldc;
    task.pieces = chunk.pieces;
    task.beta = context_.job.call.beta;
    task.tiles = chunk.tiles;
    if (!context_.publish(task, chunk.ticket)) return {};
    if (context_.traced) {
      context_.add_span(Events::begin(Events::kD2h, slot), Events::end(Events::kD2h, slot), "D2H stream", 0,
                        "download", chunk.width * chunk.height * kElement);
    }
    ++published_;
    progressed = true;
  }
  return {};
}

Status WriteBacks::issue(std::vector<char>& issued, bool& progressed) noexcept {
  const auto slots = static_cast<std::size_t>(context_.plan.d2h_slots);
  device::Device& device = context_.device;
  while (issued_ < enabled_ && issued_ < retired_ + slots) {
    const Chunk& chunk = chunks_[issued_];
    const auto step = static_cast<std::size_t>(chunk.step);
    const std::size_t slot = issued_ % slots;
    if (chunk.first) {
      for (const std::int32_t before : context_.plan.steps[step].after) {
        GEMMHOIST_RETURN_IF_FAILED(
            device.wait(Stream::d2h, Events::end(Events::kSteps, static_cast<std::size_t>(before))));
      }
    }
    if (context_.traced)
      GEMMHOIST_RETURN_IF_FAILED(context_.record(Events::begin(Events::kD2h, slot), Stream::d2h, true));
    device::Copy2D copy;
    copy.host = context_.d2h_slots + static_cast<std::int64_t>(slot) * context_.chunk_elements();
    copy.host_pitch = static_cast<std::size_t>(chunk.width * kElement);
    copy.device = chunk.source;
    copy.device_pitch = static_cast<std::size_t>(context_.plan.ldc * kElement);
    copy.width = static_cast<std::size_t>(chunk.width * kElement);
    copy.height = static_cast<std::size_t>(chunk.height);
    GEMMHOIST_RETURN_IF_FAILED(device.copy_d2h(Stream::d2h, copy));
    GEMMHOIST_RETURN_IF_FAILED(
        context_.record(Events::end(Events::kD2h, slot), Stream::d2h, context_.traced));
    if (chunk.last) {
      GEMMHOIST_RETURN_IF_FAILED(context_.record(Events::end(Events::kSteps, step), Stream::d2h));
      issued[step] = 1;
    }
    ++issued_;
    progressed = true;
  }
  return {};
}

}  // namespace gemmhoist::pipeline
