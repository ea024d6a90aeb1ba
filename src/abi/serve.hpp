// Serve: what every exported spelling does with its arguments, behind the forwarders in entries.cpp.
#pragma once

#include <cstdint>

#include "dispatch/dispatch.hpp"
#include "fallback/fallback.hpp"

#ifndef __x86_64__
#error "the arguments below are laid out as the System V ABI of x86-64 passes them"
#endif

namespace gemmhoist::abi {

// Integers are declared 64 bits wide for every spelling: registers and stack slots are, and a 32-bit
// program's upper halves, which hold anything, are cut off where they are read and travel on untouched where
// they are forwarded.
//
// Of cblas_sgemm's arguments the first six integers come in registers and so do alpha and beta; the others
// lie on the stack, where a structure of them, passed by value, lies too. As one thing a jump leaves them in
// place, while the compiler would load and store six arguments one by one, and spill what is in its way.
struct CblasStack {
  const float* a;
  std::int64_t lda;
  const float* b;
  std::int64_t ldb;
  float* c;
  std::int64_t ldc;
};
using CblasFunction = void (*)(int order, int trans_a, int trans_b, std::int64_t m, std::int64_t n,
                               std::int64_t k, float alpha, float beta, CblasStack stack);

// Without the hidden lengths of the two characters: C programs often pass none, and a tail call leaves those
// of a Fortran program where they are.
struct FortranStack {
  const float* a;
  const void* lda;
  const float* b;
  const void* ldb;
  const float* beta;
  float* c;
  const void* ldc;
};
using FortranFunction = void (*)(const char* trans_a, const char* trans_b, const void* m, const void* n,
                                 const void* k, const float* alpha, FortranStack stack);

// Serves the call, or names the function that the forwarder has to jump to with the same arguments. Null: C
// is complete. By value all: a forwarder whose own arguments somebody may point to could not jump.
CblasFunction serve_cblas(fallback::Spelling spelling, int order, int trans_a, int trans_b, std::int64_t m,
                          std::int64_t n, std::int64_t k, float alpha, float beta, CblasStack stack) noexcept;
FortranFunction serve_fortran(fallback::Spelling spelling, const char* trans_a, const char* trans_b,
                              const void* m, const void* n, const void* k, const float* alpha,
                              FortranStack stack) noexcept;

}  // namespace gemmhoist::abi
