// Ledger: which tiles of C hold their result already. A tile is written whole, once, by one CPU thread, then
// marked; a tile that is not marked is one whose C is still the caller's.
//
// A tile is what one copy task writes (one piece of a write-back chunk), not the chunk: a thread that has
// begun a tile ends it, whatever happens meanwhile, so that no tile is ever left half-written when a call is
// taken back. With beta != 0 a half-written tile could be neither finished nor repeated.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "plan/plan.hpp"

namespace gemmhoist::pipeline {

enum class TileState : std::uint8_t { pending, writing, written };

struct Tile {
  plan::Range rows, cols;
  std::atomic<TileState> state{TileState::pending};

  // True for the one thread that may write the tile, which then calls end().
  bool begin() noexcept {
    TileState expected = TileState::pending;
    return state.compare_exchange_strong(expected, TileState::writing, std::memory_order_acq_rel);
  }
  void end() noexcept { state.store(TileState::written, std::memory_order_release); }
};

// A region of C that the fallback still has to make.
struct Region {
  plan::Range rows, cols;
};

// The tiles of one call, in the order in which they go home. Built on the worker; read by the caller too.
// Ledgers live for ever and are used again (take_ledger): giving one back frees nothing, hence is fit for a
// caller's thread.
class Ledger {
 public:
  // Forgets the former call. May throw std::bad_alloc.
  void clear(std::size_t expected_tiles);
  // Appends a tile; at most `expected_tiles` of them.
  Tile* add(plan::Range rows, plan::Range cols) noexcept;

  std::size_t size() const noexcept { return size_; }
  std::int64_t written() const noexcept;
  // The tiles that are not written, neighbours merged; for when nobody writes any more. No heap.
  void for_each_left(void (*visit)(const Region&, void*), void* context) const noexcept;

  Ledger* next = nullptr;  // in the pool

 private:
  std::unique_ptr<Tile[]> tiles_;
  std::size_t size_ = 0, capacity_ = 0;
};

// From the pool, or new; null when there is no memory. Worker threads only.
Ledger* take_ledger() noexcept;
void give_back(Ledger& ledger) noexcept;  // any thread

}  // namespace gemmhoist::pipeline
