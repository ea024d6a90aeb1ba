#include "workload.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <thread>

namespace gemmhoist::bench {
namespace {

constexpr std::uint64_t kSeedA = 1, kSeedB = 2, kSeedC = 3, kSeedSigns = 4;
constexpr double kUnit = 0x1p-24;

// SplitMix64 of a counter: random access, so threads fill any part of a matrix with the same numbers.
std::uint64_t mix(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = (seed << 48) + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

float value(std::uint64_t seed, std::int64_t index) {  // uniform in (-1, 1), 24 bits
  const auto bits = static_cast<std::int64_t>(mix(seed, static_cast<std::uint64_t>(index)) >> 40);
  return static_cast<float>(2 * bits + 1 - (1 << 24)) * 0x1p-24f;
}

// Runs body(begin, end) over [0, count) on all processors.
template <class Body>
void parallel(std::int64_t count, std::int64_t grain, const Body& body) {
  const std::int64_t most = std::max(1u, std::thread::hardware_concurrency());
  const std::int64_t parts = std::clamp<std::int64_t>(count / std::max<std::int64_t>(grain, 1), 1, most);
  std::vector<std::thread> threads;
  for (std::int64_t i = 1; i < parts; ++i) {
    threads.emplace_back([&, i] { body(count * i / parts, count * (i + 1) / parts); });
  }
  body(0, count / parts);
  for (auto& thread : threads) thread.join();
}

void fill(float* data, std::int64_t count, std::uint64_t seed) {
  parallel(count, 1 << 16, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) data[i] = value(seed, i);
  });
}

// y = op(M) x, or |op(M)| x. M is column-major, op(M) is rows x columns.
template <class Element>
std::vector<double> multiply(const Element& element, std::int64_t rows, std::int64_t columns,
                             bool row_is_contiguous, const std::vector<double>& x) {
  std::vector<double> y(rows, 0.0);
  parallel(rows, 64, [&](std::int64_t begin, std::int64_t end) {
    if (row_is_contiguous) {  // a stored column is a row of op(M): a dot product each
      for (std::int64_t i = begin; i < end; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < columns; ++j) sum += element(i, j) * x[j];
        y[i] = sum;
      }
      return;
    }
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = begin; i < end; ++i) y[i] += element(i, j) * x[j];
    }
  });
  return y;
}

struct Operand {
  const float* data;
  std::int64_t ld;
  Transpose trans;
  double operator()(std::int64_t i, std::int64_t j) const {
    return trans == Transpose::no ? data[i + j * ld] : data[j + i * ld];
  }
};

std::vector<double> times(const Operand& m, std::int64_t rows, std::int64_t columns,
                          const std::vector<double>& x) {
  return multiply(m, rows, columns, m.trans == Transpose::yes, x);
}

std::vector<double> absolute_times(const Operand& m, std::int64_t rows, std::int64_t columns,
                                   const std::vector<double>& x) {
  const auto element = [&](std::int64_t i, std::int64_t j) { return std::abs(m(i, j)); };
  return multiply(element, rows, columns, m.trans == Transpose::yes, x);
}

}  // namespace

void FreeBuffer::operator()(float* data) const {
  if (cuda != nullptr) {
    cuda->free_host(data);
  } else {
    munmap(data, bytes);
  }
}

Buffer allocate(std::size_t floats, Memory memory, const CudaRuntime* cuda) {
  const std::size_t bytes = std::max<std::size_t>(floats, 1) * sizeof(float);
  void* data = nullptr;
  if (memory == Memory::pinned) {
    cuda->check(cuda->malloc_host(&data, bytes), "cudaMallocHost");
    return Buffer(static_cast<float*>(data), FreeBuffer{cuda, bytes});
  }
  data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  return Buffer(static_cast<float*>(data), FreeBuffer{nullptr, bytes});
}

Workload::Workload(const Shape& shape, Memory memory, const CudaRuntime* cuda)
    : shape_(shape), memory_(memory), call_(canonical(shape)) {
  const std::int64_t columns_a = call_.trans_a == Transpose::no ? call_.k : call_.m;
  const std::int64_t columns_b = call_.trans_b == Transpose::no ? call_.n : call_.k;
  const std::int64_t count_a = call_.lda * columns_a, count_b = call_.ldb * columns_b;
  a_ = allocate(static_cast<std::size_t>(count_a), memory, cuda);
  b_ = allocate(static_cast<std::size_t>(count_b), memory, cuda);
  c_ = allocate(static_cast<std::size_t>(call_.ldc * call_.n), memory, cuda);
  fill(a_.get(), count_a, kSeedA);
  fill(b_.get(), count_b, kSeedB);
  reset_c();
  call_.a = a_.get();
  call_.b = b_.get();
  call_.c = c_.get();
  make_reference();
}

void Workload::reset_c() {
  fill(c_.get(), call_.ldc * call_.n, kSeedC);
}

void Workload::make_reference() {
  const Operand a{call_.a, call_.lda, call_.trans_a}, b{call_.b, call_.ldb, call_.trans_b};
  const Operand c0{call_.c, call_.ldc, Transpose::no};
  const double alpha = call_.alpha, beta = call_.beta;
  signs_.resize(call_.n);
  for (std::int64_t j = 0; j < call_.n; ++j) signs_[j] = (mix(kSeedSigns, j) & 1) != 0 ? 1.0 : -1.0;
  const std::vector<double> mean(call_.n, 1.0 / static_cast<double>(call_.n));
  product_ = times(a, call_.m, call_.k, times(b, call_.k, call_.n, signs_));
  magnitude_ = absolute_times(a, call_.m, call_.k, absolute_times(b, call_.k, call_.n, mean));
  std::vector<double> c_signs(call_.m, 0.0), c_mean(call_.m, 0.0);
  if (call_.beta != 0.0f) {
    c_signs = times(c0, call_.m, call_.n, signs_);
    c_mean = absolute_times(c0, call_.m, call_.n, mean);
  }
  for (std::int64_t i = 0; i < call_.m; ++i) {
    product_[i] = alpha * product_[i] + beta * c_signs[i];
    magnitude_[i] = std::abs(alpha) * magnitude_[i] + std::abs(beta) * c_mean[i];
  }
}

std::string Workload::check_c(Arithmetic arithmetic) const {
  const std::string wrong = check_samples(arithmetic);
  return wrong.empty() ? check_rows(arithmetic) : wrong;
}

std::string Workload::check_samples(Arithmetic arithmetic) const {
  constexpr int kSamples = 256;  // the corners, then random places
  // Rounding both operands to 11 bits moves a product by at most 2^-10 of itself.
  const double rounding = arithmetic == Arithmetic::tf32 ? 0x1p-10 : 0.0;
  const double relative = static_cast<double>(call_.k + 3) * kUnit + rounding;
  const Operand a{call_.a, call_.lda, call_.trans_a}, b{call_.b, call_.ldb, call_.trans_b};
  for (int s = 0; s < kSamples; ++s) {
    std::int64_t i = static_cast<std::int64_t>(mix(5, s) % static_cast<std::uint64_t>(call_.m));
    std::int64_t j = static_cast<std::int64_t>(mix(6, s) % static_cast<std::uint64_t>(call_.n));
    if (s < 4) {
      i = (s & 1) != 0 ? call_.m - 1 : 0;
      j = (s & 2) != 0 ? call_.n - 1 : 0;
    }
    const double before = value(kSeedC, i + j * call_.ldc);
    double exact = 0, size = 0;
    for (std::int64_t l = 0; l < call_.k; ++l) {
      exact += a(i, l) * b(l, j);
      size += std::abs(a(i, l) * b(l, j));
    }
    exact = exact * call_.alpha + before * call_.beta;
    size = size * std::abs(call_.alpha) + std::abs(before * call_.beta);
    const double got = call_.c[i + j * call_.ldc];
    if (!(std::abs(got - exact) <= relative * size)) {
      return fmt::format("C({}, {}) is {}, not {}", i, j, got, exact);
    }
  }
  return {};
}

std::string Workload::check_rows(Arithmetic arithmetic) const {
  // Errors of the elements of a row are independent and, on such data, at most some 6 units of 2^-24 |A||B|
  // (measured for cuBLAS at k = 4096); their signed sum then grows with sqrt(n). 32 leaves room, and a lost
  // tile, or a lost k block of one, is still far outside. Of tf32 they are 80 times as large.
  const double unit = arithmetic == Arithmetic::tf32 ? 80 * kUnit : kUnit;
  const double width = 32 * unit * std::sqrt(static_cast<double>(call_.n));
  const auto row_sums = times(Operand{call_.c, call_.ldc, Transpose::no}, call_.m, call_.n, signs_);
  for (std::int64_t i = 0; i < call_.m; ++i) {
    if (!(std::abs(row_sums[i] - product_[i]) <= width * magnitude_[i])) {
      return fmt::format("row {} of C sums to {}, not {}", i, row_sums[i], product_[i]);
    }
  }
  return {};
}

}  // namespace gemmhoist::bench
