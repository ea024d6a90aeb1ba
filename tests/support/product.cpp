#include "support/product.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>

namespace gemmhoist::test {
namespace {

constexpr std::uint32_t kPaddingBits =
    0x7fa5a5a5;  // a signalling NaN: a copy through arithmetic would change it

float padding() {
  float value;
  std::memcpy(&value, &kPaddingBits, sizeof(value));
  return value;
}

bool same_bits(const float& x, const float& y) {
  return std::memcmp(&x, &y, sizeof(x)) == 0;
}

class Generator {
 public:
  Generator(Values values, std::uint32_t seed) : values_(values), engine_(seed) {}

  float operator()() {
    const float unit = static_cast<float>(engine_() >> 8) * 0x1p-24F;
    switch (values_) {
      case Values::symmetric:
        return 2 * unit - 1;
      case Values::positive:
        return unit;
      case Values::wide_range:
        break;
    }
    return std::ldexp(2 * unit - 1, static_cast<int>(engine_() % 61) - 30);
  }

 private:
  Values values_;
  std::minstd_rand engine_;
};

// A stored matrix of `cols` columns: the last one ends the buffer.
GuardedBuffer make_matrix(std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  GuardedBuffer buffer(static_cast<std::size_t>((cols - 1) * ld + rows));
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = padding();
  return buffer;
}

template <class Value>
void fill(const GuardedBuffer& buffer, std::int64_t rows, std::int64_t cols, std::int64_t ld, Value&& value) {
  for (std::int64_t j = 0; j < cols; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) buffer[static_cast<std::size_t>(i + j * ld)] = value();
  }
}

double a_at(const GemmCall& c, std::int64_t i, std::int64_t p) {
  return c.trans_a == Transpose::no ? c.a[i + p * c.lda] : c.a[p + i * c.lda];
}
double b_at(const GemmCall& c, std::int64_t p, std::int64_t j) {
  return c.trans_b == Transpose::no ? c.b[p + j * c.ldb] : c.b[j + p * c.ldb];
}

// Column j of |A||B| and of AB, in fp64.
void column(const GemmCall& call, const std::vector<double>& a, std::int64_t j, std::vector<double>& sum,
            std::vector<double>& magnitude) {
  std::fill(sum.begin(), sum.end(), 0.0);
  std::fill(magnitude.begin(), magnitude.end(), 0.0);
  for (std::int64_t p = 0; p < call.k; ++p) {
    const double b = b_at(call, p, j);
    const double* column = a.data() + p * call.m;
    for (std::int64_t i = 0; i < call.m; ++i) {
      const double product = column[i] * b;
      sum[static_cast<std::size_t>(i)] += product;
      magnitude[static_cast<std::size_t>(i)] += std::fabs(product);
    }
  }
}

std::vector<double> dense_a(const GemmCall& call) {
  std::vector<double> a(static_cast<std::size_t>(call.m * call.k));
  for (std::int64_t p = 0; p < call.k; ++p) {
    for (std::int64_t i = 0; i < call.m; ++i) a[static_cast<std::size_t>(i + p * call.m)] = a_at(call, i, p);
  }
  return a;
}

bool right(float got, double reference, double bound) {
  if (std::isnan(reference)) return std::isnan(got);
  if (std::isinf(reference)) return static_cast<double>(got) == reference;
  constexpr double kMost = std::numeric_limits<float>::max();
  if (std::fabs(reference) + bound > kMost) return true;  // overflow aside
  return std::fabs(static_cast<double>(got) - reference) <= bound;
}

}  // namespace

std::string to_string(const ProductShape& s) {
  std::ostringstream out;
  out << s.m << 'x' << s.n << 'x' << s.k << ' ' << to_char(s.trans_a) << to_char(s.trans_b) << " pad "
      << s.pad_a << ',' << s.pad_b << ',' << s.pad_c << " alpha " << s.alpha << " beta " << s.beta;
  return out.str();
}

Product::Product(const ProductShape& s, Values values, std::uint32_t seed) {
  const std::int64_t a_rows = s.trans_a == Transpose::no ? s.m : s.k, a_cols = s.m + s.k - a_rows;
  const std::int64_t b_rows = s.trans_b == Transpose::no ? s.k : s.n, b_cols = s.k + s.n - b_rows;
  call_ = {s.trans_a, s.trans_b,        s.m,    s.n,     s.k,          s.alpha, nullptr, a_rows + s.pad_a,
           nullptr,   b_rows + s.pad_b, s.beta, nullptr, s.m + s.pad_c};
  a_ = make_matrix(a_rows, a_cols, call_.lda);
  b_ = make_matrix(b_rows, b_cols, call_.ldb);
  c_ = make_matrix(s.m, s.n, call_.ldc);
  Generator generate(values, seed);
  fill(a_, a_rows, a_cols, call_.lda, generate);
  fill(b_, b_rows, b_cols, call_.ldb, generate);
  if (s.beta == 0) {
    fill(c_, s.m, s.n, call_.ldc, [] { return std::numeric_limits<float>::quiet_NaN(); });
  } else {
    fill(c_, s.m, s.n, call_.ldc, generate);
  }
  call_.a = a_.data();
  call_.b = b_.data();
  call_.c = c_.data();
  remember_c();
}

void Product::remember_c() {
  c0_.assign(c_.data(), c_.data() + c_.size());
}

void Product::restore_c() {
  std::memcpy(c_.data(), c0_.data(), c0_.size() * sizeof(float));
}

std::string Product::check() const {
  const GemmCall& call = call_;
  const std::vector<double> a = dense_a(call);
  std::vector<double> sum(static_cast<std::size_t>(call.m)), magnitude(static_cast<std::size_t>(call.m));
  for (std::int64_t j = 0; j < call.n; ++j) {
    column(call, a, j, sum, magnitude);
    for (std::int64_t i = 0; i < call.m; ++i) {
      const auto at = static_cast<std::size_t>(i + j * call.ldc);
      double reference = static_cast<double>(call.alpha) * sum[static_cast<std::size_t>(i)];
      double size = std::fabs(static_cast<double>(call.alpha)) * magnitude[static_cast<std::size_t>(i)];
      if (call.beta != 0) {
        reference += static_cast<double>(call.beta) * c0_[at];
        size += std::fabs(static_cast<double>(call.beta) * c0_[at]);
      }
      if (right(c_[at], reference, error_bound(call.k, size, call.alpha, call.beta))) continue;
      std::ostringstream out;
      out << "C(" << i << ", " << j << ") is " << c_[at] << ", not " << reference;
      return out.str();
    }
    for (std::int64_t i = call.m; i < call.ldc && j + 1 < call.n; ++i) {
      const auto at = static_cast<std::size_t>(i + j * call.ldc);
      if (!same_bits(c_[at], c0_[at])) return "padding of column " + std::to_string(j) + " was written";
    }
  }
  return {};
}

double error_bound(std::int64_t k, double magnitude, double alpha, double beta) {
  const double terms = static_cast<double>(k) + 3;
  return terms * 0x1p-24 * magnitude + terms * 0x1p-149 * (1 + std::fabs(alpha) + std::fabs(beta));
}

void reference_multiply(const GemmCall& call) {
  for (std::int64_t j = 0; j < call.n; ++j) {
    for (std::int64_t i = 0; i < call.m; ++i) {
      double sum = 0;
      for (std::int64_t p = 0; p < call.k; ++p) sum += a_at(call, i, p) * b_at(call, p, j);
      float& c = call.c[i + j * call.ldc];
      const double old = call.beta == 0 ? 0 : static_cast<double>(call.beta) * c;
      c = static_cast<float>(static_cast<double>(call.alpha) * sum + old);
    }
  }
}

}  // namespace gemmhoist::test
