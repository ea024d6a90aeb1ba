// Library facts: what kind of BLAS a library is, told from what it exports and, for the width of its
// integers, from how it behaves.
#pragma once

#include "fallback/loaded_objects.hpp"

namespace gemmhoist::fallback {

struct LibraryFacts {
  bool openblas = false;
  bool naive = false;  // reference BLAS or libgslcblas: an unblocked loop, 10 to 50 times slower
  bool plain_names_ilp64 = false;
};

// `handle`: a dlopen handle of `object`.
LibraryFacts facts_of(void* handle, const LoadedObject& object) noexcept;

}  // namespace gemmhoist::fallback
