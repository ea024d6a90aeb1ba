// Adapters: functions with the signature of a spelling, over a provider whose own function has another
// interface or integer width, or over none at all.
#pragma once

#include "fallback/fallback.hpp"

namespace gemmhoist::fallback {

// For use as Provider::function of that spelling.
void* adapter_of(Spelling spelling) noexcept;

}  // namespace gemmhoist::fallback
