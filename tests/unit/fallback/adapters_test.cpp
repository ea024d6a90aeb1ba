// Every spelling over every kind of BLAS: the caller's interface and integer width against those of the
// library, which here is one of the tests' own (made in four kinds) that counts its calls.
#include "fallback/adapters.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "fallback/fallback.hpp"
#include "unit/fallback/product_oracle.hpp"

namespace gemmhoist::fallback {
namespace {

constexpr std::int64_t kGarbage = 0x7eadbeefLL << 32;  // what 32-bit callers may leave in upper halves

void call_spelling(Spelling s, const GemmCall& c) {
  const Provider& p = provider(s);
  const bool wide = p.arguments_ilp64;
  const std::int64_t garbage = wide ? 0 : kGarbage;
  const std::int64_t m = c.m | garbage, n = c.n | garbage, k = c.k | garbage;
  const std::int64_t lda = c.lda | garbage, ldb = c.ldb | garbage, ldc = c.ldc | garbage;
  if (is_cblas(s)) {
    const auto code = [](Transpose t) { return t == Transpose::no ? 111 : 112; };
    reinterpret_cast<void (*)(int, int, int, std::int64_t, std::int64_t, std::int64_t, float, const float*,
                              std::int64_t, const float*, std::int64_t, float, float*, std::int64_t)>(
        p.function)(102, code(c.trans_a), code(c.trans_b), m, n, k, c.alpha, c.a, lda, c.b, ldb, c.beta, c.c,
                    ldc);
  } else {
    const char ta = c.trans_a == Transpose::no ? 'n' : 'c', tb = c.trans_b == Transpose::no ? 'N' : 't';
    reinterpret_cast<void (*)(const char*, const char*, const void*, const void*, const void*, const float*,
                              const float*, const void*, const float*, const void*, const float*, float*,
                              const void*, std::size_t, std::size_t)>(p.function)(
        &ta, &tb, &m, &n, &k, &c.alpha, c.a, &lda, c.b, &ldb, &c.beta, c.c, &ldc, 1, 1);
  }
}

// The provider of a process never changes: each kind of library has a process of its own (see meson.build).
TEST(Adapters, EverySpellingIsServedByTheLibraryOfThisProcess) {
  const char* path = std::getenv("GEMMHOIST_FALLBACK");
  if (path == nullptr) GTEST_SKIP() << "run with GEMMHOIST_FALLBACK=a library of the tests";
  // Not opened before discovery does: a library that the process had anyway would say how wide its integers
  // are.
  EXPECT_EQ(std::string(provider(Spelling::cblas_sgemm).path), path);
  void* library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr) << dlerror();
  const long* calls = static_cast<const long*>(dlsym(library, "fake_blas_calls"));
  ASSERT_NE(calls, nullptr);
  long expected = 0;
  for (int i = 0; i < kSpellings; ++i) {
    const auto s = static_cast<Spelling>(i);
    SCOPED_TRACE(spelling_name(s));
    EXPECT_EQ(std::string(provider(s).path), path);
    EXPECT_EQ(provider(s).arguments_ilp64, is_64bit_name(s));
    for (Transpose ta : {Transpose::no, Transpose::yes})
      for (Transpose tb : {Transpose::no, Transpose::yes}) {
        Problem problem(ta, tb, 7, 5, 6, 1.5f, 0.5f);
        std::vector<float> result = problem.c;
        GemmCall call = problem.call;
        call.c = result.data();
        call_spelling(s, call);
        EXPECT_EQ(problem.wrong(result), 0);
        result = problem.c;
        multiply(provider(s), call);
        EXPECT_EQ(problem.wrong(result), 0);
        expected += 2;
      }
    EXPECT_EQ(*calls, expected);
  }
  EXPECT_FALSE(inside_fallback());
}

// A leading dimension that 32 bits cannot hold, over a library of either width. The matrices have one column,
// so that they need no memory of that size.
TEST(Adapters, StridesBeyond32BitsAreRight) {
  const std::int64_t huge = std::int64_t{1} << 32 | 3;
  const float a[3] = {1, 2, 3}, b[1] = {2};
  float c[3] = {1, 1, 1};
  const GemmCall call{Transpose::no, Transpose::no, 3, 1, 1, 1, a, huge, b, huge, 1, c, huge};
  call_spelling(Spelling::cblas_sgemm64_, call);
  EXPECT_EQ(c[0], 3);
  EXPECT_EQ(c[2], 7);
  call_spelling(Spelling::sgemm_64_, call);
  EXPECT_EQ(c[1], 9);
}

TEST(Adapters, ExistForEverySpelling) {
  for (int i = 0; i < kSpellings; ++i) EXPECT_NE(adapter_of(static_cast<Spelling>(i)), nullptr);
}

}  // namespace
}  // namespace gemmhoist::fallback
