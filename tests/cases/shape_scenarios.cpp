// Shapes: odd sizes round the tiles, operands that end at pages without access, sizes on both sides of the
// threshold.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "cases/blas.hpp"
#include "cases/scenario.hpp"

namespace gemmhoist::cases {
namespace {

using test::Product;
using test::ProductShape;

// Every combination of the case's extents, each with its own transposes, order, padding and beta in turn.
std::string odd_sizes() {
  std::vector<std::int64_t> extents = {1, 7, 11, 15, 33, 45, 127, 129, 1025};
  // Plain loops, there and in the check, would take minutes: several tiles' worth where nothing is a real
  // GPU.
  if (big() < extents.back()) extents.back() = std::min<std::int64_t>(extents.back(), big() + 1);
  const auto count = static_cast<std::int64_t>(extents.size());
  return in_parallel(count * count * count, [&](std::int64_t at) -> std::string {
    ProductShape shape;
    shape.m = extents[static_cast<std::size_t>(at % count)];
    shape.n = extents[static_cast<std::size_t>(at / count % count)];
    shape.k = extents[static_cast<std::size_t>(at / count / count)];
    shape.alpha = at % 5 == 0 ? -1.5F : 1;
    for (int way = 0; way < 4; ++way) {
      shape.trans_a = kTransposes[way % 2];
      shape.trans_b = kTransposes[way / 2];
      shape.pad_a = (at + way) % 3;
      shape.pad_b = (at + way) % 4;
      shape.pad_c = 1 + (at + way) % 5;
      shape.beta = (at + way) % 3 == 0 ? 0.5F : 0;
      const Order order = kOrders[static_cast<std::size_t>(at + way / 2) % 2];
      if (auto wrong = right(shape, order, static_cast<std::uint32_t>(at + 1)); !wrong.empty()) return wrong;
    }
    return {};
  });
}

// Product's buffers begin after a page without access and end at one, the last column unpadded.
std::string guard_pages() {
  const std::int64_t n = big();
  for (ProductShape shape : {ProductShape{8, 8, 8},
                             {1, 1, 1},
                             {17, 33, 65},
                             {n, n / 2, n - 1},
                             {n / 3, n + 1, n / 2},
                             {64, 64, 64},
                             {128, 256, 32}}) {
    for (const std::int64_t pad : {0, 5}) {
      shape.pad_a = shape.pad_b = pad;
      shape.pad_c = 2 * pad;
      shape.beta = pad == 0 ? 0 : 0.5F;
      if (auto wrong = right_in_all_ways(shape); !wrong.empty()) return wrong;
    }
  }
  return {};
}

// Numerics in general: SMALL, BIG and sizes between, kinds of values, both names.
std::string all_ways() {
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{8}, std::int64_t{40}, big()}) {
    for (const test::Values values :
         {test::Values::symmetric, test::Values::positive, test::Values::wide_range}) {
      ProductShape shape{n, n, n};
      shape.pad_a = shape.pad_b = shape.pad_c = 2;
      shape.alpha = -0.75F;
      shape.beta = 0.5F;
      if (auto wrong = right_in_all_ways(shape, values); !wrong.empty()) return wrong;
    }
    ProductShape shape{n, n + 2, n + 1, Transpose::yes, Transpose::no};
    const Product product(shape);
    multiply_fortran(product.call());
    if (auto wrong = product.check(); !wrong.empty()) return "sgemm_: " + wrong;
  }
  return {};
}

// Sizes doubling through the threshold, wherever it is; each size often enough for the model to learn from it
// and for the GPU, where there is one, to have started.
std::string through_the_threshold() {
  for (std::int64_t n = 8; n <= big(); n *= 2) {
    for (const std::int64_t off : {-1, 0, 1}) {
      ProductShape shape{n + off, n, n - off};
      shape.beta = off == 0 ? 0 : 0.5F;
      if (auto wrong = right_in_all_ways(shape); !wrong.empty()) return wrong;
    }
  }
  return {};
}

constexpr Scenario kScenarios[] = {
    {"odd sizes", odd_sizes},
    {"guard pages", guard_pages},
    {"all ways", all_ways},
    {"through the threshold", through_the_threshold},
};

}  // namespace

std::span<const Scenario> shape_scenarios() {
  return kScenarios;
}

}  // namespace gemmhoist::cases
