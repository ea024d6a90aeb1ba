#include "pipeline/ledger.hpp"

#include <mutex>
#include <new>

namespace gemmhoist::pipeline {
namespace {

constinit std::mutex pool_mutex;
constinit Ledger* pool = nullptr;

// Grows `region` by `other` where the two together are a rectangle.
bool merge(Region& region, const Region& other) noexcept {
  if (region.rows == other.rows && region.cols.end() == other.cols.begin) {
    region.cols.extent += other.cols.extent;
    return true;
  }
  if (region.cols == other.cols && region.rows.end() == other.rows.begin) {
    region.rows.extent += other.rows.extent;
    return true;
  }
  return false;
}

// Regions in, fewer regions out. Two levels: tiles make a run (the columns of a strip), runs make a block
// (strips one below the other). More would need a list, and a call on the CPU for each tile costs more than
// the few rectangles that this misses.
class Merger {
 public:
  Merger(void (*visit)(const Region&, void*), void* context) noexcept : visit_(visit), context_(context) {}

  void add(const Region& tile) noexcept {
    if (has_run_ && merge(run_, tile)) return;
    end_run();
    run_ = tile;
    has_run_ = true;
  }

  void end() noexcept {
    end_run();
    if (has_block_) visit_(block_, context_);
    has_block_ = false;
  }

 private:
  void end_run() noexcept {
    if (!has_run_) return;
    has_run_ = false;
    if (has_block_ && merge(block_, run_)) return;
    if (has_block_) visit_(block_, context_);
    block_ = run_;
    has_block_ = true;
  }

  void (*visit_)(const Region&, void*);
  void* context_;
  Region run_, block_;
  bool has_run_ = false, has_block_ = false;
};

}  // namespace

void Ledger::clear(std::size_t expected_tiles) {
  size_ = 0;
  if (expected_tiles <= capacity_) return;
  tiles_.reset();
  capacity_ = 0;
  tiles_ = std::make_unique<Tile[]>(expected_tiles);
  capacity_ = expected_tiles;
}

Tile* Ledger::add(plan::Range rows, plan::Range cols) noexcept {
  if (size_ == capacity_) return nullptr;
  Tile& tile = tiles_[size_++];
  tile.rows = rows;
  tile.cols = cols;
  tile.state.store(TileState::pending, std::memory_order_relaxed);
  return &tile;
}

std::int64_t Ledger::written() const noexcept {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    count += tiles_[i].state.load(std::memory_order_acquire) == TileState::written;
  }
  return count;
}

void Ledger::for_each_left(void (*visit)(const Region&, void*), void* context) const noexcept {
  Merger merger(visit, context);
  for (std::size_t i = 0; i < size_; ++i) {
    const Tile& tile = tiles_[i];
    if (tile.state.load(std::memory_order_acquire) != TileState::written) merger.add({tile.rows, tile.cols});
  }
  merger.end();
}

Ledger* take_ledger() noexcept {
  {
    std::lock_guard lock(pool_mutex);
    if (Ledger* ledger = pool; ledger != nullptr) {
      pool = ledger->next;
      return ledger;
    }
  }
  return new (std::nothrow) Ledger;
}

void give_back(Ledger& ledger) noexcept {
  std::lock_guard lock(pool_mutex);
  ledger.next = pool;
  pool = &ledger;
}

}  // namespace gemmhoist::pipeline
