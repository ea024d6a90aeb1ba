// Calls into a provider: what the rest of the layer and its tests share.
#pragma once

#include <cstdint>

#include "fallback/fallback.hpp"

namespace gemmhoist::fallback {

// From now on inside_fallback() looks at the thread's depth: called before a provider that may re-enter is
// published.
void put_guards_in_use() noexcept;

// Cuts `call` into products with no extent beyond `block`, beta applied once to each element of C.
void multiply_in_blocks(const GemmCall& call, std::int64_t block, void (*product)(const GemmCall&, void*),
                        void* context) noexcept;

}  // namespace gemmhoist::fallback
