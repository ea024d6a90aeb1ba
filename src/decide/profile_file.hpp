// Text of a saved machine profile. Pure: no file is touched here; no heap, no locale.
//
//   gemmhoist_profile = 1
//   machine = NVIDIA H200, driver 580.65, 16 threads
//   h2d_latency_s = 8.2e-06
//   ...
//   cpu_flops_per_s.21.2 = 4.1e+11        (bucket and thinness of CpuRates; learnt ones only)
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/machine_profile.hpp"

namespace gemmhoist::decide {

inline constexpr std::size_t kProfileTextBytes = 8192;  // enough for any profile and a key of 256 bytes

// Writes the text to `out`; answers its length, or 0 where `out` is too small or `machine` (what must be the
// same for the figures to hold: devices, driver, threads) is empty, too long, or has a control character.
std::size_t print_profile(const MachineProfile& profile, std::string_view machine,
                          std::span<char> out) noexcept;

// Reads such a text. False, with `profile` untouched, where its version or machine is another, a line is not
// understood, a key is missing that every version wrote, or there twice, or a value is not finite, negative,
// or a rate of zero.
[[nodiscard]] bool parse_profile(std::string_view text, std::string_view machine,
                                 MachineProfile& profile) noexcept;

}  // namespace gemmhoist::decide
