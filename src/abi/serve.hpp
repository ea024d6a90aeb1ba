// Serve: what every exported spelling does with its arguments, behind the forwarders in entries.cpp.
#pragma once

#include <cstdint>

#include "dispatch/dispatch.hpp"
#include "fallback/fallback.hpp"

namespace gemmhoist::abi {

// Integers are declared 64 bits wide for every spelling: registers and stack slots are, and a 32-bit
// program's upper halves, which hold anything, are cut off where they are read and travel on untouched where
// they are forwarded.
using CblasFunction = void (*)(int order, int trans_a, int trans_b, std::int64_t m, std::int64_t n,
                               std::int64_t k, float alpha, const float* a, std::int64_t lda, const float* b,
                               std::int64_t ldb, float beta, float* c, std::int64_t ldc);

// Without the hidden lengths of the two characters: C programs often pass none, and a tail call leaves those
// of a Fortran program where they are.
using FortranFunction = void (*)(const char* trans_a, const char* trans_b, const void* m, const void* n,
                                 const void* k, const float* alpha, const float* a, const void* lda,
                                 const float* b, const void* ldb, const float* beta, float* c,
                                 const void* ldc);

// Serves the call, or names the function that the forwarder has to jump to with the same arguments. Null: C
// is complete.
CblasFunction serve_cblas(fallback::Spelling spelling, int order, int trans_a, int trans_b, std::int64_t m,
                          std::int64_t n, std::int64_t k, float alpha, const float* a, std::int64_t lda,
                          const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) noexcept;
FortranFunction serve_fortran(fallback::Spelling spelling, const char* trans_a, const char* trans_b,
                              const void* m, const void* n, const void* k, const float* alpha, const float* a,
                              const void* lda, const float* b, const void* ldb, const float* beta, float* c,
                              const void* ldc) noexcept;

}  // namespace gemmhoist::abi
