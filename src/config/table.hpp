// The table of options: one row says how an option is spelt, read, checked, stored and described.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "config/options.hpp"

namespace gemmhoist::config {

enum class Kind : std::uint8_t { choice, integer, path, list };

struct Row {
  OptionSpec spec;
  Kind kind;
  std::int64_t least = 0, most = 0;                        // integer; the same as spec.values says
  void (*store_number)(Options&, std::int64_t) = nullptr;  // integer, and choice: its place in spec.values
  void (*store_text)(Options&, const char*) = nullptr;     // path, list
};

std::span<const Row> rows() noexcept;
const Row* find_row(std::string_view name) noexcept;  // null: no such option

// Longest path, terminator left aside: what os::kPathBytes holds with "%p" expanded to seven digits twice.
inline constexpr std::size_t kLongestPath = 1000;

}  // namespace gemmhoist::config
