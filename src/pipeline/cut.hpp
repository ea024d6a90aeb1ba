// Cut: a rectangle of memory into parts that fit a slot, or into pieces that fit a thread. Pure arithmetic.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/checked.hpp"

namespace gemmhoist::pipeline {

// `height` lines of `width` contiguous elements, cut into `across` x `down` parts of at most part_width x
// part_height. Parts are numbered along the line first.
struct Grid {
  std::int64_t width = 0, height = 0;
  std::int64_t part_width = 0, part_height = 0;
  std::int64_t across = 0, down = 0;

  std::int64_t parts() const noexcept { return across * down; }
};

struct Part {
  std::int64_t x = 0, y = 0, width = 0, height = 0;
};

inline Part part(const Grid& grid, std::int64_t index) noexcept {
  const std::int64_t x = index % grid.across * grid.part_width;
  const std::int64_t y = index / grid.across * grid.part_height;
  return {x, y, std::min(grid.part_width, grid.width - x), std::min(grid.part_height, grid.height - y)};
}

// Parts of equal size rather than full ones and a remainder: the last part of a panel is waited for. Never
// more than `limit`; multiples of `step` where that leaves more than nothing.
inline std::int64_t even_share(std::int64_t extent, std::int64_t limit, std::int64_t step) noexcept {
  if (extent <= limit) return extent;
  const std::int64_t share = round_up(divide_up(extent, divide_up(extent, limit)), step);
  if (share <= limit) return share;
  return limit >= step ? limit / step * step : limit;
}

// At most `limit` elements a part, lines kept whole where they fit; but where they are cut, at least
// `least_lines` lines a part (as far as there are any).
inline Grid cut(std::int64_t width, std::int64_t height, std::int64_t limit,
                std::int64_t least_lines = 1) noexcept {
  limit = std::max<std::int64_t>(limit, 1);
  const std::int64_t lines = std::clamp<std::int64_t>(std::min(least_lines, height), 1, limit);
  Grid grid{width, height};
  // 32 elements are a line of the GPU's memory: parts begin where its transactions do.
  grid.part_width = even_share(width, limit / lines, 32);
  grid.part_height = even_share(height, std::max<std::int64_t>(limit / grid.part_width, 1), lines);
  grid.across = divide_up(width, grid.part_width);
  grid.down = divide_up(height, grid.part_height);
  return grid;
}

}  // namespace gemmhoist::pipeline
