// Products to check a kernel with: shapes, operands, guarded results, sums in fp64 and the bound.
#pragma once

#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/kernel_descriptor.hpp"
#include "families.hpp"

namespace gemmhoist::gpu_kernels {

struct Shape {
  std::int32_t m, n, k, real_k;
};

// From the tile: less than one, one less, one more, several; from the stages: fewer, as many, one more, twice
// and one. Where k is deep enough, its last rows are padding.
std::vector<Shape> small_shapes(const KernelDescriptor& kernel);

// The first few of them, and no large ones: for tools that make a kernel a hundred times slower.
inline bool few_shapes = false;

struct Scaling {
  float alpha;
  bool accumulate;
};
inline constexpr Scaling kScalings[] = {{1.0f, false}, {-1.75f, true}, {0x1p-3f, true}, {3.0f, false}};

// A bit pattern that no kernel makes: a NaN with a payload of its own.
inline constexpr std::uint32_t kGuardBits = 0xFFC0DEADu;
inline const float kGuard = std::bit_cast<float>(kGuardBits);
inline bool is_guard(float value) {
  return std::bit_cast<std::uint32_t>(value) == kGuardBits;
}

// C with guards between its columns, before it and behind it.
struct GuardedC {
  static constexpr std::int64_t kMargin = 256;
  std::int64_t m, n, ldc;
  std::vector<float> values;

  GuardedC(std::int64_t rows, std::int64_t cols);
  float& at(std::int64_t i, std::int64_t j) {
    return values[static_cast<std::size_t>(kMargin + i + j * ldc)];
  }
  float at(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(kMargin + i + j * ldc)];
  }
  bool guards_whole() const;
};

// K-outer panels, as a kernel of that tile wants them.
struct Operands {
  std::int64_t lda, ldb;
  std::vector<float> a, b;

  Operands(const KernelDescriptor& kernel, const Shape& shape, Family family, std::mt19937& random);
};

// Sums of products, and of their magnitudes, in fp64.
struct Sums {
  std::vector<double> sum, magnitude;

  Sums(const Operands& operands, const Shape& shape);
};

// The bound for C = alpha (A B + C0): beta is alpha, or nothing.
bool within_bound(double k, Scaling scaling, double sum, double magnitude, double old, float got);

std::string describe(const KernelDescriptor& kernel, const Shape& shape, const char* family, Scaling scaling);

// C before: numbers of the results' own size where they are added, else guards, which a read would spread.
void fill_c(GuardedC& c, const Sums& sums, Scaling scaling, std::mt19937& random);

}  // namespace gemmhoist::gpu_kernels
