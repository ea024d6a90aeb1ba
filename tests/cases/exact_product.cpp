#include "cases/exact_product.hpp"

#include <vector>

namespace gemmhoist::cases {
namespace {

constexpr float kOldC = 6;

}  // namespace

void fill_exact(const Extents& e, const Operands& operands) {
  for (std::int64_t i = 0; i < e.a_size(); ++i) operands.a[i] = static_cast<float>(i * 7 % 11 - 5);
  for (std::int64_t i = 0; i < e.b_size(); ++i) operands.b[i] = static_cast<float>(i * 5 % 13 - 6);
  for (std::int64_t i = 0; i < e.c_size(); ++i) operands.c[i] = kOldC;
}

GemmCall exact_call(const Extents& e, const Operands& operands, float beta) {
  return {Transpose::no, Transpose::no, e.m, e.n,  e.k,        1,  operands.a,
          e.m,           operands.b,    e.k, beta, operands.c, e.m};
}

std::string check_exact(const Extents& e, const Operands& operands, float beta) {
  return in_parallel(e.n, [&](std::int64_t j) -> std::string {
    std::vector<float> column(static_cast<std::size_t>(e.m), beta * kOldC);
    for (std::int64_t p = 0; p < e.k; ++p) {
      const float factor = operands.b[p + j * e.k];
      const float* a = operands.a + p * e.m;
      for (std::int64_t i = 0; i < e.m; ++i) column[static_cast<std::size_t>(i)] += factor * a[i];
    }
    for (std::int64_t i = 0; i < e.m; ++i) {
      const float got = operands.c[i + j * e.m], expected = column[static_cast<std::size_t>(i)];
      if (got == expected) continue;
      return "C(" + std::to_string(i) + ", " + std::to_string(j) + ") is " + std::to_string(got) + ", not " +
             std::to_string(expected);
    }
    return {};
  });
}

std::string exact_product(const Extents& e, float beta) {
  std::vector<float> a(static_cast<std::size_t>(e.a_size())), b(static_cast<std::size_t>(e.b_size())),
      c(static_cast<std::size_t>(e.c_size()));
  const Operands operands{a.data(), b.data(), c.data()};
  fill_exact(e, operands);
  multiply(exact_call(e, operands, beta));
  return check_exact(e, operands, beta);
}

}  // namespace gemmhoist::cases
