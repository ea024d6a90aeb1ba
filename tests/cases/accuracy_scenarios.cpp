// Accuracy: the relative Frobenius error on Gaussian data, and products with the identity, which give A's
// bits.
#include <cmath>
#include <cstring>
#include <random>
#include <sstream>
#include <vector>

#include "cases/blas.hpp"
#include "cases/scenario.hpp"

namespace gemmhoist::cases {
namespace {

using Matrix = std::vector<float>;  // n x n, column-major

Matrix gaussian(std::int64_t n, std::uint32_t seed) {
  Matrix matrix(static_cast<std::size_t>(n * n));
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  for (float& value : matrix) value = normal(engine);
  return matrix;
}

// ||C - AB||F / ||AB||F in fp64, a column of C at a time.
double relative_error(std::int64_t n, const Matrix& a, const Matrix& b, const Matrix& c) {
  std::vector<double> error(static_cast<std::size_t>(n)), size(static_cast<std::size_t>(n));
  (void)in_parallel(n, [&](std::int64_t j) -> std::string {
    std::vector<double> column(static_cast<std::size_t>(n));
    for (std::int64_t p = 0; p < n; ++p) {
      const double factor = b[static_cast<std::size_t>(p + j * n)];
      const float* x = a.data() + p * n;
      for (std::int64_t i = 0; i < n; ++i) column[static_cast<std::size_t>(i)] += factor * x[i];
    }
    for (std::int64_t i = 0; i < n; ++i) {
      const double exact = column[static_cast<std::size_t>(i)];
      const double off = c[static_cast<std::size_t>(i + j * n)] - exact;
      error[static_cast<std::size_t>(j)] += off * off;
      size[static_cast<std::size_t>(j)] += exact * exact;
    }
    return {};
  });
  double errors = 0, sizes = 0;
  for (std::size_t j = 0; j < error.size(); ++j) errors += error[j], sizes += size[j];
  return std::sqrt(errors / sizes);
}

std::string frobenius_error() {
  for (const std::int64_t n : {std::int64_t{512}, 2 * big()}) {
    const Matrix a = gaussian(n, 1), b = gaussian(n, 2);
    Matrix c(a.size());
    multiply({Transpose::no, Transpose::no, n, n, n, 1, a.data(), n, b.data(), n, 0, c.data(), n});
    const double error = relative_error(n, a, b, c);
    const double most = 2e-6 * std::max(1.0, std::sqrt(static_cast<double>(n) / 4096));
    if (!(error <= most)) {
      std::ostringstream out;
      out << "relative error " << error << " at n = " << n;
      return out.str();
    }
  }
  return {};
}

// All 24 bits of every value must come through: 11-bit products would not let them.
std::string identity() {
  for (const std::int64_t n : {std::int64_t{8}, std::int64_t{512}, 2 * big()}) {
    Matrix a(static_cast<std::size_t>(n * n)), unit(a.size());
    std::minstd_rand engine(3);
    for (float& value : a) value = 1 + static_cast<float>(engine() % (1U << 23)) * 0x1p-23F;
    for (std::int64_t i = 0; i < n; ++i) unit[static_cast<std::size_t>(i + i * n)] = 1;
    for (const Order order : kOrders) {
      for (const Transpose trans : kTransposes) {
        Matrix c(a.size(), 7);
        multiply({Transpose::no, trans, n, n, n, 1, a.data(), n, unit.data(), n, 0, c.data(), n}, order);
        if (std::memcmp(c.data(), a.data(), a.size() * sizeof(float)) != 0) {
          return "A I is not A at n = " + std::to_string(n);
        }
      }
    }
  }
  return {};
}

constexpr Scenario kScenarios[] = {{"frobenius error", frobenius_error}, {"identity", identity}};

}  // namespace

std::span<const Scenario> accuracy_scenarios() {
  return kScenarios;
}

}  // namespace gemmhoist::cases
