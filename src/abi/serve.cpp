#include "abi/serve.hpp"

#include <cstddef>

#include "abi/at_once.hpp"
#include "core/gemm_rules.hpp"
#include "observe/counters.hpp"

namespace gemmhoist::abi {
namespace {

using fallback::Provider;
using fallback::Spelling;
using observe::Counter;

// What becomes of a call after the passes.
enum class Next : std::uint8_t {
  done,  // nothing more
  jump,  // to the provider, by tail call
  call,  // the provider, guarded, timed or both
};

// alpha = 0 is C by beta, and nothing else is read. OpenBLAS' kernels of small products for AVX-512 (0.3.21;
// up to m n k = 1e6) read A and B all the same, so that NaN in them comes through; small ones are scaled
// here. What is larger OpenBLAS scales rightly, and with several threads.
bool is_small_scaling(const GemmCall& call) noexcept {
  constexpr double kSmall = 1e6;
  return call.alpha == 0 && call.flops() <= 2 * kSmall;
}

// An illegal call is never guarded: the program's xerbla may leave it by longjmp.
template <typename Raw>
Next decide(Spelling spelling, const Provider& provider, const Raw& raw, GemmCall& call,
            dispatch::CpuTicket& ticket) noexcept {
  observe::add(family_of(spelling));
  switch (normalise(raw, call)) {
    case CallClass::illegal:
      observe::add(Counter::calls_illegal);
      return Next::jump;
    case CallClass::trivial:
      observe::add(Counter::calls_trivial);
      if (is_small_scaling(call)) {
        fallback::portable_sgemm(call);
        return Next::done;
      }
      return provider.may_reenter ? Next::call : Next::jump;
    case CallClass::product:
      break;
  }
  if (dispatch::serve(spelling, provider, call, ticket)) return Next::done;
  return provider.may_reenter || ticket.timed ? Next::call : Next::jump;
}

template <typename Call>
void call_provider(const Provider& provider, Call&& call) noexcept {
  if (provider.may_reenter) {
    const fallback::InsideFallback inside;
    call();
  } else {
    call();
  }
}

}  // namespace

CblasFunction serve_cblas(Spelling spelling, int order, int trans_a, int trans_b, std::int64_t m,
                          std::int64_t n, std::int64_t k, float alpha, float beta,
                          CblasStack stack) noexcept {
  const Provider& provider = fallback::provider(spelling);
  const auto function = reinterpret_cast<CblasFunction>(provider.function);
  if (fallback::inside_fallback()) return function;
  const bool wide = provider.arguments_ilp64;
  const CblasArguments raw{order,
                           trans_a,
                           trans_b,
                           narrowed(m, wide),
                           narrowed(n, wide),
                           narrowed(k, wide),
                           alpha,
                           stack.a,
                           narrowed(stack.lda, wide),
                           stack.b,
                           narrowed(stack.ldb, wide),
                           beta,
                           stack.c,
                           narrowed(stack.ldc, wide)};
  GemmCall call;
  dispatch::CpuTicket ticket;
  switch (decide(spelling, provider, raw, call, ticket)) {
    case Next::done:
      return nullptr;
    case Next::jump:
      return function;
    case Next::call:
      break;
  }
  call_provider(provider, [&] { function(order, trans_a, trans_b, m, n, k, alpha, beta, stack); });
  if (ticket.timed) dispatch::cpu_call_done(spelling, call, ticket);
  return nullptr;
}

FortranFunction serve_fortran(Spelling spelling, const char* trans_a, const char* trans_b, const void* m,
                              const void* n, const void* k, const float* alpha, FortranStack stack) noexcept {
  const Provider& provider = fallback::provider(spelling);
  const auto function = reinterpret_cast<FortranFunction>(provider.function);
  if (fallback::inside_fallback()) return function;
  const bool wide = provider.arguments_ilp64;
  const FortranArguments raw{
      *trans_a,    *trans_b, read(m, wide),         read(n, wide), read(k, wide),
      *alpha,      stack.a,  read(stack.lda, wide), stack.b,       read(stack.ldb, wide),
      *stack.beta, stack.c,  read(stack.ldc, wide)};
  GemmCall call;
  dispatch::CpuTicket ticket;
  switch (decide(spelling, provider, raw, call, ticket)) {
    case Next::done:
      return nullptr;
    case Next::jump:
      return function;
    case Next::call:
      break;
  }
  using WithLengths = void (*)(const char*, const char*, const void*, const void*, const void*, const float*,
                               FortranStack, std::size_t, std::size_t);
  const auto with_lengths = reinterpret_cast<WithLengths>(provider.function);
  call_provider(provider, [&] { with_lengths(trans_a, trans_b, m, n, k, alpha, stack, 1, 1); });
  if (ticket.timed) dispatch::cpu_call_done(spelling, call, ticket);
  return nullptr;
}

}  // namespace gemmhoist::abi
