// Calls into a provider: the guard, the ABI of each kind, sizes beyond 32 bits.
#include "fallback/calls.hpp"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>

namespace gemmhoist::fallback {
namespace {

// Depth, not a flag: a BLAS may itself be layered. Plain integer, so that threads of the host pay nothing for
// it.
constinit thread_local int t_depth = 0;

template <typename Int>
void call_cblas(void* target, const GemmCall& c) noexcept {
  using Function =
      void (*)(int, int, int, Int, Int, Int, float, const float*, Int, const float*, Int, float, float*, Int);
  constexpr int kColumnMajor = 102;
  const auto code = [](Transpose t) { return t == Transpose::no ? 111 : 112; };
  reinterpret_cast<Function>(target)(kColumnMajor, code(c.trans_a), code(c.trans_b), static_cast<Int>(c.m),
                                     static_cast<Int>(c.n), static_cast<Int>(c.k), c.alpha, c.a,
                                     static_cast<Int>(c.lda), c.b, static_cast<Int>(c.ldb), c.beta, c.c,
                                     static_cast<Int>(c.ldc));
}

// Character arguments carry hidden lengths after all others: size_t since gfortran 8, int before; 1 fits
// both.
template <typename Int>
void call_fortran(void* target, const GemmCall& c) noexcept {
  using Function = void (*)(const char*, const char*, const Int*, const Int*, const Int*, const float*,
                            const float*, const Int*, const float*, const Int*, const float*, float*,
                            const Int*, std::size_t, std::size_t);
  const char trans_a = to_char(c.trans_a), trans_b = to_char(c.trans_b);
  const Int m = static_cast<Int>(c.m), n = static_cast<Int>(c.n), k = static_cast<Int>(c.k);
  const Int lda = static_cast<Int>(c.lda), ldb = static_cast<Int>(c.ldb), ldc = static_cast<Int>(c.ldc);
  reinterpret_cast<Function>(target)(&trans_a, &trans_b, &m, &n, &k, &c.alpha, c.a, &lda, c.b, &ldb, &c.beta,
                                     c.c, &ldc, 1, 1);
}

void call_target(const Provider& provider, const GemmCall& call) noexcept {
  if (provider.cblas) {
    provider.ilp64 ? call_cblas<std::int64_t>(provider.target, call) : call_cblas<int>(provider.target, call);
  } else {
    provider.ilp64 ? call_fortran<std::int64_t>(provider.target, call)
                   : call_fortran<int>(provider.target, call);
  }
}

}  // namespace

bool inside_fallback() noexcept {
  return guards_in_use() && t_depth > 0;
}

InsideFallback::InsideFallback() noexcept {
  ++t_depth;
}
InsideFallback::~InsideFallback() {
  --t_depth;
}

void put_guards_in_use() noexcept {
  detail::known.guards_in_use.store(true, std::memory_order_relaxed);
}

void multiply_in_blocks(const GemmCall& call, std::int64_t block, void (*product)(const GemmCall&, void*),
                        void* context) noexcept {
  for (std::int64_t j = 0; j < call.n; j += block) {
    for (std::int64_t i = 0; i < call.m; i += block) {
      for (std::int64_t l = 0; l < call.k; l += block) {
        GemmCall part = call;
        part.m = std::min(block, call.m - i);
        part.n = std::min(block, call.n - j);
        part.k = std::min(block, call.k - l);
        part.a += call.trans_a == Transpose::no ? i + l * call.lda : l + i * call.lda;
        part.b += call.trans_b == Transpose::no ? l + j * call.ldb : j + l * call.ldb;
        part.c += i + j * call.ldc;
        if (l > 0) part.beta = 1;  // the caller's beta is applied once
        product(part, context);
      }
    }
  }
}

void multiply(const Provider& provider, const GemmCall& call) noexcept {
  const bool trivial = call.m <= 0 || call.n <= 0 || call.k <= 0 || call.alpha == 0;
  const bool strides_fit = provider.ilp64 || std::max({call.lda, call.ldb, call.ldc}) <= INT_MAX;
  // A target that comes back to us and is then found to lead to itself again has no other end.
  const bool circular = provider.target_may_reenter && inside_fallback();
  if (provider.target == nullptr || trivial || !strides_fit || circular) {
    portable_sgemm(call);
    return;
  }
  const auto product = [](const GemmCall& part, void* context) {
    const auto& target = *static_cast<const Provider*>(context);
    if (target.target_may_reenter) {
      const InsideFallback inside;
      call_target(target, part);
    } else {
      call_target(target, part);
    }
  };
  Provider copy = provider;
  if (provider.ilp64 || std::max({call.m, call.n, call.k}) <= INT_MAX) {
    product(call, &copy);
  } else {
    multiply_in_blocks(call, std::int64_t{1} << 30, product, &copy);
  }
}

}  // namespace gemmhoist::fallback
