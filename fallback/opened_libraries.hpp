// Opened libraries: those that discovery itself brought into the process. They say nothing about what the
// program was built for: a libopenblas64 that we opened for one spelling must not make another look like a
// 64-bit program's.
#pragma once

#include "fallback/loaded_objects.hpp"

namespace gemmhoist::fallback {

// Opens a library privately; null on failure, with dlerror cleared. What the process did not have before, and
// which defines a spelling of ours, is remembered.
void* open_library(const char* name) noexcept;

bool opened_by_us(const LoadedObject& object) noexcept;

}  // namespace gemmhoist::fallback
