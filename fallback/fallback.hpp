// Fallback: the CPU BLAS behind every call, found at run time and never ourselves.
#pragma once

#include <cstdint>

#include "core/gemm_call.hpp"

namespace gemmhoist::fallback {

// Every exported spelling. The order is that of `spelling_name`.
enum class Spelling : std::uint8_t {
  cblas_sgemm,
  cblas_sgemm64_,
  cblas_sgemm_64,
  scipy_cblas_sgemm,
  scipy_cblas_sgemm64_,
  sgemm_,
  sgemm,
  sgemm_64_,
  scipy_sgemm_,
  scipy_sgemm_64_,
  count_
};
const char* spelling_name(Spelling spelling) noexcept;
constexpr bool is_cblas(Spelling s) noexcept {
  return s <= Spelling::scipy_cblas_sgemm64_;
}

// What serves a spelling. Found at the first call of that spelling, kept for the life of the process.
struct Provider {
  void* function = nullptr;  // of the caller's own kind (CBLAS or Fortran)
  bool cblas = false;        // kind of `function`
  bool ilp64 = false;        // its integers are 64-bit
  bool arguments_ilp64 =
      false;  // the program's integers are: from the spelling, or, for plain names, because the
              // next provider in order is one with 64-bit integers under plain names
  bool may_reenter = false;  // it may call an exported spelling of ours (reference cblas_sgemm calls sgemm_)
  const char* path = "";     // library, for the log; "built-in" for the portable loop
};

// Lock-free after the first call of a spelling; never null.
const Provider& provider(Spelling spelling) noexcept;

// True while a legal fallback call of this thread is under way: an entry met then is the provider's own inner
// call and goes straight on.
bool inside_fallback() noexcept;

// A legal product (or part of one) on the CPU, with the provider of `spelling`.
void multiply(const Provider& provider, const GemmCall& call) noexcept;

// The portable last resort: fp32 FMAs, in order of k. Also the CPU's answer where no BLAS is to be had.
void portable_sgemm(const GemmCall& call) noexcept;

}  // namespace gemmhoist::fallback
