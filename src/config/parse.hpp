// Parsing of option values: strict, whole strings only, the same at compile time (for the table's own check)
// and at run time.
#pragma once

#include <cstdint>
#include <string_view>

namespace gemmhoist::config {

// Decimal digits, nothing else: no sign, space, prefix, suffix or empty string; at most 15 digits.
constexpr bool parse_integer(std::string_view text, std::int64_t& value) noexcept {
  if (text.empty() || text.size() > 15) return false;
  value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + (c - '0');
  }
  return true;
}

// Place of `text` in "a|b|c", -1 where it is none of them.
constexpr int find_choice(std::string_view choices, std::string_view text) noexcept {
  for (int place = 0;; ++place) {
    const auto bar = choices.find('|');
    if (choices.substr(0, bar) == text) return place;
    if (bar == std::string_view::npos) return -1;
    choices.remove_prefix(bar + 1);
  }
}

// "all", or ordinals from 0 to 63, each once, with commas between.
constexpr bool is_device_list(std::string_view text) noexcept {
  if (text == "all") return true;
  std::uint64_t seen = 0;
  while (true) {
    const auto comma = text.find(',');
    std::int64_t ordinal = 0;
    if (!parse_integer(text.substr(0, comma), ordinal) || ordinal > 63) return false;
    if ((seen >> ordinal & 1) != 0) return false;
    seen |= std::uint64_t{1} << ordinal;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace gemmhoist::config
