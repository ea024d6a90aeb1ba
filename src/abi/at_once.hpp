// At once: small products, which are most calls of many programs and none of our business, go from the entry
// to the provider without a frame and without memory of ours but a counter.
//
// OpenBLAS does 16 x 16 x 16 in 90 ns. Whatever is unusual, from an illegal argument to a log, is left to
// serve().
#pragma once

#include <cstdint>
#include <utility>

#include "abi/serve.hpp"
#include "core/gemm_rules.hpp"
#include "observe/counters.hpp"

namespace gemmhoist::abi {

constexpr observe::Counter family_of(fallback::Spelling spelling) noexcept {
  using observe::Counter;
  if (fallback::is_cblas(spelling)) {
    return fallback::is_64bit_name(spelling) ? Counter::calls_cblas64 : Counter::calls_cblas;
  }
  return fallback::is_64bit_name(spelling) ? Counter::calls_fortran64 : Counter::calls_fortran;
}

// A 32-bit program's upper halves hold anything.
inline std::int64_t narrowed(std::int64_t value, bool ilp64) noexcept {
  return ilp64 ? value : static_cast<std::int32_t>(value);
}
inline std::int64_t read(const void* value, bool ilp64) noexcept {
  return ilp64 ? *static_cast<const std::int64_t*>(value) : *static_cast<const std::int32_t*>(value);
}

// The provider where small products may go to it without a guard and without a question; else null.
[[gnu::always_inline]] inline const fallback::Provider* provider_at_once(
    fallback::Spelling spelling) noexcept {
  // Read first: whoever finds a provider that calls us back puts guards in use before making it known.
  const fallback::Provider* known = fallback::known_provider(spelling);
  if (!dispatch::small_products_go_unexamined() || fallback::guards_in_use()) return nullptr;
  return known;
}

[[gnu::always_inline]] inline bool counted_as_small(fallback::Spelling spelling, Letter trans_a,
                                                    Letter trans_b, std::int64_t m, std::int64_t n,
                                                    std::int64_t k, float alpha, std::int64_t lda,
                                                    std::int64_t ldb, std::int64_t ldc) noexcept {
  // First what makes most of the rules trivial, so that the compiler leaves them out.
  const auto in_range = [](std::int64_t extent) { return extent > 0 && extent < dispatch::kSmallestVolume; };
  if (!in_range(m) || !in_range(n) || !in_range(k)) return false;
  if (class_of(trans_a, trans_b, m, n, k, alpha, lda, ldb, ldc) != CallClass::product) return false;
  if (!dispatch::is_too_small(m, n, k)) return false;
  return observe::add_both_as_owner(family_of(spelling), observe::Counter::calls_cpu);
}

// Names the function that the entry has to jump to; null: serve_cblas knows.
[[gnu::always_inline]] inline CblasFunction cblas_at_once(fallback::Spelling spelling, int order, int trans_a,
                                                          int trans_b, std::int64_t m, std::int64_t n,
                                                          std::int64_t k, float alpha,
                                                          const CblasStack& stack) noexcept {
  constexpr int kRowMajor = 101, kColumnMajor = 102;
  const fallback::Provider* provider = provider_at_once(spelling);
  if (provider == nullptr) return nullptr;
  const bool wide = provider->arguments_ilp64;
  m = narrowed(m, wide);
  n = narrowed(n, wide);
  std::int64_t lda = narrowed(stack.lda, wide), ldb = narrowed(stack.ldb, wide);
  Letter letter_a = letter_of(trans_a), letter_b = letter_of(trans_b);
  if (order == kRowMajor) {  // as normalise() does
    std::swap(m, n);
    std::swap(lda, ldb);
    std::swap(letter_a, letter_b);
  } else if (order != kColumnMajor) {
    return nullptr;
  }
  if (!counted_as_small(spelling, letter_a, letter_b, m, n, narrowed(k, wide), alpha, lda, ldb,
                        narrowed(stack.ldc, wide)))
    return nullptr;
  return reinterpret_cast<CblasFunction>(provider->function);
}

[[gnu::always_inline]] inline FortranFunction fortran_at_once(fallback::Spelling spelling,
                                                              const char* trans_a, const char* trans_b,
                                                              const void* m, const void* n, const void* k,
                                                              const float* alpha,
                                                              const FortranStack& stack) noexcept {
  const fallback::Provider* provider = provider_at_once(spelling);
  if (provider == nullptr) return nullptr;
  const bool wide = provider->arguments_ilp64;
  if (!counted_as_small(spelling, letter_of(*trans_a), letter_of(*trans_b), read(m, wide), read(n, wide),
                        read(k, wide), *alpha, read(stack.lda, wide), read(stack.ldb, wide),
                        read(stack.ldc, wide)))
    return nullptr;
  return reinterpret_cast<FortranFunction>(provider->function);
}

}  // namespace gemmhoist::abi
