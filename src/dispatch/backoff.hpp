// How long a device rests after a failure that may pass: doubled from the first value to the last, from the
// first again after a success.
#pragma once

#include <cstdint>

namespace gemmhoist::dispatch {

inline constexpr std::int64_t kFirstBackoffNs = 100'000'000;
inline constexpr std::int64_t kLastBackoffNs = 10'000'000'000;

}  // namespace gemmhoist::dispatch
