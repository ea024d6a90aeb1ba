// Ledger: which tiles of C hold their result already. A tile is written whole, once, by a CPU thread, then
// marked; a tile that is not marked is one whose C is still the caller's.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "plan/plan.hpp"

namespace gemmhoist::pipeline {

enum class TileState : std::uint8_t { pending, writing, written };

struct Tile {
  plan::Range rows, cols;
  std::atomic<TileState> state{TileState::pending};
};

}  // namespace gemmhoist::pipeline
