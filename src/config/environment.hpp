// Reading the options from an environment: pure but for the lines that it writes about bad settings.
#pragma once

#include <string_view>

#include "config/options.hpp"
#include "config/table.hpp"

namespace gemmhoist::config {

// Copies of the texts that Options points to: the program may change its environment at any time.
struct TextStorage {
  static constexpr std::size_t kTexts = 8;
  char text[kTexts][kLongestPath + 1];
};

// Names that begin so are for the tests of the library and never reported as unknown.
inline constexpr std::string_view kReservedPrefixes[] = {"GEMMHOIST_TEST_", "GEMMHOIST_SIM_"};

// `environment`: "NAME=value" strings, a null pointer last. The first of two equal names counts, as for
// getenv. Each bad value and each unknown GEMMHOIST_ name (eight of them at most) makes one line on
// `warnings_fd`.
void read_environment(const char* const* environment, Options& options, TextStorage& storage,
                      int warnings_fd) noexcept;

}  // namespace gemmhoist::config
