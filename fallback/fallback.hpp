// Fallback: the CPU BLAS behind every call, found at run time and never ourselves.
#pragma once

#include <atomic>
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
inline constexpr int kSpellings = static_cast<int>(Spelling::count_);

const char* spelling_name(Spelling spelling) noexcept;
constexpr bool is_cblas(Spelling s) noexcept {
  return s <= Spelling::scipy_cblas_sgemm64_;
}
// The name itself promises 64-bit integers.
constexpr bool is_64bit_name(Spelling s) noexcept {
  return s == Spelling::cblas_sgemm64_ || s == Spelling::cblas_sgemm_64 ||
         s == Spelling::scipy_cblas_sgemm64_ || s == Spelling::sgemm_64_ || s == Spelling::scipy_sgemm_64_;
}
// The name says nothing: 32-bit integers, unless the BLAS behind it was built with 64-bit ones (Debian's
// libblas64 and libopenblas64).
constexpr bool is_plain_name(Spelling s) noexcept {
  return s == Spelling::cblas_sgemm || s == Spelling::sgemm_ || s == Spelling::sgemm;
}

// What serves a spelling. Found at the first call of that spelling, kept for the life of the process.
struct Provider {
  // What an entry calls with the program's own arguments: the function of a BLAS or, where that BLAS has
  // another interface or integer width, an adapter of ours. Never null.
  void* function = nullptr;
  // The program's integers are 64-bit: from the spelling or, for plain names, because the next provider in
  // order is one with 64-bit integers under plain names.
  bool arguments_ilp64 = false;
  // `function` may call an exported spelling of ours (reference cblas_sgemm calls sgemm_): hold an
  // InsideFallback round a legal call.
  bool may_reenter = false;

  // What multiply() calls; null: the portable loop.
  void* target = nullptr;
  bool cblas = false;               // interface of `target`
  bool ilp64 = false;               // its integers are 64-bit
  bool target_may_reenter = false;  // as may_reenter, of `target`

  const char* path = "";  // library, for the log; "built-in" for the portable loop
};

// Lock-free after the first call of a spelling; never null. The first may come on several threads at once, in
// a constructor or in a forked child: it takes no lock of ours.
const Provider& provider(Spelling spelling) noexcept;

// What an entry wants to know of small products, in as few cache lines as may be: they go by thousands a
// millisecond.
namespace detail {
struct alignas(64) Known {
  // Whether inside_fallback() can be true at all: not before a provider was found that re-enters. Most
  // processes are spared the thread-local.
  std::atomic<bool> guards_in_use{false};
  std::atomic<const Provider*> published[kSpellings]{};
};
extern Known known;
}  // namespace detail

// The provider of a spelling where one was found before, else null.
inline const Provider* known_provider(Spelling spelling) noexcept {
  return detail::known.published[static_cast<int>(spelling)].load(std::memory_order_acquire);
}

// Round a fork, for pthread_atfork: a library that another thread is loading is loaded whole before. The
// first waits for that, a second at most.
void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void after_fork_in_child() noexcept;

// True while a legal fallback call of this thread is under way: an entry met then is the provider's own inner
// call and goes straight on.
bool inside_fallback() noexcept;
inline bool guards_in_use() noexcept {
  return detail::known.guards_in_use.load(std::memory_order_relaxed);
}

class InsideFallback {
 public:
  InsideFallback() noexcept;
  ~InsideFallback();
  InsideFallback(const InsideFallback&) = delete;
  InsideFallback& operator=(const InsideFallback&) = delete;
};

// A legal product (or part of one) on the CPU, with the provider of `spelling`. Sizes that its integers
// cannot hold go in blocks, or through the portable loop.
void multiply(const Provider& provider, const GemmCall& call) noexcept;

// The portable last resort: fp32 FMAs, in order of k. Also the CPU's answer where no BLAS is to be had.
void portable_sgemm(const GemmCall& call) noexcept;

}  // namespace gemmhoist::fallback
