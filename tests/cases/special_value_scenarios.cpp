// Special values: NaN in C, alpha = 0, k = 0, NaN and Inf in operands, empty products.
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "cases/blas.hpp"
#include "cases/scenario.hpp"

namespace gemmhoist::cases {
namespace {

using test::Product;
using test::ProductShape;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::string probe() {
  ProductShape shape;
  shape.m = shape.n = shape.k = 64;
  return right(shape);
}

// C is full of NaN wherever beta is zero; Product sees to that and to the padding.
std::string nan_in_c() {
  const ProductShape sizes[] = {{8, 8, 8}, {5, 3, 7}, {big() + 1, big() - 1, 33}};
  for (ProductShape shape : sizes) {
    shape.pad_c = 3;
    for (const float beta : {0.0F, -0.0F}) {
      shape.beta = beta;
      if (auto wrong = right_in_all_ways(shape); !wrong.empty()) return wrong;
    }
  }
  for (const float beta : {0.0F, -0.0F}) {
    ProductShape shape{4097, 4095, 33};
    shape.pad_c = 3;
    shape.beta = beta;
    if (auto wrong = right(shape, beta == 0 && std::signbit(beta) ? Order::row_major : Order::column_major);
        !wrong.empty()) {
      return wrong;
    }
  }
  return {};
}

const float* closed_page() {
  static void* const page = mmap(nullptr, 1 << 12, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return static_cast<const float*>(page);
}

// alpha = 0, or k = 0 with null operands, on an n x n C: `before` becomes `after`, to the bit.
std::string scaled(std::int64_t n, bool no_k, float beta, float before, float after) {
  const std::vector<float> nan_operand(static_cast<std::size_t>(n * n), kNaN);
  const float* operands[] = {closed_page(), nan_operand.data()};
  if (no_k) operands[0] = operands[1] = nullptr;
  for (const float* operand : operands) {
    for (const Order order : kOrders) {
      for (const Transpose trans_a : kTransposes) {
        for (const Transpose trans_b : kTransposes) {
          std::vector<float> c(static_cast<std::size_t>(n * n), before);
          multiply({trans_a, trans_b, n, n, no_k ? 0 : n, no_k ? 1.0F : 0.0F, operand, n, operand, n, beta,
                    c.data(), n},
                   order);
          for (const float value : c) {
            if (std::memcmp(&value, &after, sizeof value) != 0) {
              return "beta " + std::to_string(beta) + ": " + std::to_string(before) + " became " +
                     std::to_string(value);
            }
          }
        }
      }
    }
  }
  return {};
}

std::string alpha_zero() {
  struct Expectation {
    float beta, before, after;
  };
  for (const std::int64_t n : {std::int64_t{8}, big()}) {
    for (const auto& [beta, before, after] : {Expectation{3, 2, 6},
                                              {0, kNaN, 0},
                                              {-0.0F, kNaN, 0},
                                              {1, -0.0F, -0.0F},
                                              {1, 1e-45F, 1e-45F},
                                              {1, kNaN, kNaN}}) {
      if (auto wrong = scaled(n, false, beta, before, after); !wrong.empty()) return wrong;
    }
  }
  return {};
}

std::string no_k() {
  for (const std::int64_t n : {std::int64_t{8}, big()}) {
    for (const auto& [beta, after] : {std::pair{0.0F, 0.0F}, {3.0F, 6.0F}}) {
      if (auto wrong = scaled(n, true, beta, 2, after); !wrong.empty()) return wrong;
    }
  }
  return {};
}

// op(A) = 0 against columns with Inf and NaN: Product's fp64 sums say where NaN belongs, and where not.
std::string nan_columns(std::int64_t n) {
  for (const Transpose trans_a : kTransposes) {
    for (const Transpose trans_b : kTransposes) {
      ProductShape shape{n, n + 1, n - 1, trans_a, trans_b};
      shape.pad_a = shape.pad_b = 1;
      Product product(shape);
      const GemmCall call = product.call();
      const std::int64_t a_span = (trans_a == Transpose::no ? call.k : call.m) - 1;
      const std::int64_t a_rows = trans_a == Transpose::no ? call.m : call.k;
      for (std::int64_t j = 0; j <= a_span; ++j) {
        for (std::int64_t i = 0; i < a_rows; ++i) product.a()[i + j * call.lda] = 0;
      }
      const auto set_b = [&](std::int64_t p, std::int64_t j, float value) {
        product.b()[trans_b == Transpose::no ? p + j * call.ldb : j + p * call.ldb] = value;
      };
      set_b(call.k / 2, 1, kInfinity);
      set_b(call.k - 1, call.n - 2, kNaN);
      for (const Order order : kOrders) {
        product.restore_c();
        multiply(call, order);
        if (auto wrong = product.check(); !wrong.empty()) return test::to_string(shape) + ": " + wrong;
        if (!std::isnan(call.c[call.ldc]) || call.c[0] != 0) return "the check saw no NaN, or one too many";
      }
    }
  }
  return {};
}

std::string nan_and_infinity() {
  for (const std::int64_t n : {std::int64_t{8}, big()}) {
    if (auto wrong = nan_columns(n); !wrong.empty()) return wrong;
    ProductShape shape{n, n + 1, n};
    shape.alpha = kNaN;
    if (auto wrong = right_in_all_ways(shape); !wrong.empty()) return "alpha NaN: " + wrong;
    shape.alpha = 1;
    shape.beta = kNaN;
    if (auto wrong = right_in_all_ways(shape); !wrong.empty()) return "beta NaN: " + wrong;
  }
  return {};
}

// Null pointers, and no product to see for anybody.
std::string empty() {
  for (const Order order : kOrders) {
    for (const Transpose trans : kTransposes) {
      const std::int64_t n = big();
      multiply({trans, trans, 0, n, n, 1, nullptr, n, nullptr, n, 0.5F, nullptr, n}, order);
      multiply({trans, trans, n, 0, n, 1, nullptr, n, nullptr, n, 0, nullptr, n}, order);
      multiply({trans, trans, 0, 0, 0, 1, nullptr, 1, nullptr, 1, 0, nullptr, 1}, order);
    }
  }
  return {};
}

constexpr Scenario kScenarios[] = {
    {"probe", probe},
    {"nan in C", nan_in_c},
    {"alpha zero", alpha_zero},
    {"no k", no_k},
    {"nan and infinity", nan_and_infinity},
    {"empty", empty},
};

}  // namespace

std::span<const Scenario> special_value_scenarios() {
  return kScenarios;
}

}  // namespace gemmhoist::cases
