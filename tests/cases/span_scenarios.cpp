// Spans: products whose offsets pass 2^31 and 2^32, operands that share memory, blocks of one C.
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "cases/blas.hpp"
#include "cases/scenario.hpp"

namespace gemmhoist::cases {
namespace {

using test::Product;
using test::ProductShape;

// Address space that becomes memory where it is touched.
class SparseFloats {
 public:
  explicit SparseFloats(std::int64_t count) : bytes_(static_cast<std::size_t>(count) * sizeof(float)) {
    void* p =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = p == MAP_FAILED ? nullptr : static_cast<float*>(p);
  }
  ~SparseFloats() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  SparseFloats(const SparseFloats&) = delete;
  SparseFloats& operator=(const SparseFloats&) = delete;
  float* data() const { return data_; }
  float& operator[](std::int64_t i) const { return data_[i]; }

 private:
  std::size_t bytes_;
  float* data_;
};

float a_value(std::int64_t i, std::int64_t p) {
  return static_cast<float>((i * 7 + p * 3) % 11 - 5);
}
float b_value(std::int64_t p, std::int64_t j) {
  return static_cast<float>((p * 5 + j) % 13 - 6);
}

// Small integers: sums are exact, and every element of C has one right value.
float exact(std::int64_t i, std::int64_t j, std::int64_t k) {
  float sum = 0;
  for (std::int64_t p = 0; p < k; ++p) sum += a_value(i, p) * b_value(p, j);
  return sum;
}

std::string at(std::int64_t i, std::int64_t j) {
  return "C(" + std::to_string(i) + ", " + std::to_string(j) + ") is wrong";
}

// C has 2^31 + 2^18 elements, nearly: the last columns lie beyond what 32 bits count. 8.6 GB of memory.
std::string square_of_46341() {
  constexpr std::int64_t n = 46341, k = 2;
  std::vector<float> a(n * k), b(k * n);
  for (std::int64_t p = 0; p < k; ++p) {
    for (std::int64_t i = 0; i < n; ++i) a[static_cast<std::size_t>(i + p * n)] = a_value(i, p);
    for (std::int64_t j = 0; j < n; ++j) b[static_cast<std::size_t>(p + j * k)] = b_value(p, j);
  }
  const SparseFloats c(n * n);
  if (c.data() == nullptr) return "no address space";
  multiply({Transpose::no, Transpose::no, n, n, k, 1, a.data(), n, b.data(), k, 0, c.data(), n});
  return in_parallel(n, [&](std::int64_t j) -> std::string {
    for (std::int64_t i = 0; i < n; ++i) {
      if (c[i + j * n] != exact(i, j, k)) return at(i, j);
    }
    return {};
  });
}

// Leading dimensions of 2^26: a matrix of 40 columns spans 2.7e9 elements, of which little is memory.
std::string long_leading_dimensions() {
  constexpr std::int64_t m = 37, n = 41, k = 40, ld = (std::int64_t{1} << 26) + 1;
  for (const Transpose trans_a : kTransposes) {
    for (const Transpose trans_b : kTransposes) {
      for (const Order order : kOrders) {
        const SparseFloats a(ld * k), b(ld * n), c(ld * n);
        if (a.data() == nullptr || b.data() == nullptr || c.data() == nullptr) return "no address space";
        for (std::int64_t p = 0; p < k; ++p) {
          for (std::int64_t i = 0; i < m; ++i) {
            a[trans_a == Transpose::no ? i + p * ld : p + i * ld] = a_value(i, p);
          }
          for (std::int64_t j = 0; j < n; ++j) {
            b[trans_b == Transpose::no ? p + j * ld : j + p * ld] = b_value(p, j);
          }
        }
        for (std::int64_t j = 0; j < n; ++j) c[m + j * ld] = 77;  // below each column
        multiply({trans_a, trans_b, m, n, k, 1, a.data(), ld, b.data(), ld, 0, c.data(), ld}, order);
        for (std::int64_t j = 0; j < n; ++j) {
          for (std::int64_t i = 0; i < m; ++i) {
            if (c[i + j * ld] != exact(i, j, k)) return at(i, j);
          }
          if (c[m + j * ld] != 77) return "something below column " + std::to_string(j) + " was written";
        }
      }
    }
  }
  return {};
}

// A and B the same matrix, or two windows on one buffer.
std::string shared_operands() {
  for (const std::int64_t n : {std::int64_t{8}, big()}) {
    for (const std::int64_t shift : {std::int64_t{0}, std::int64_t{1}, n * (n / 2)}) {
      for (const Transpose trans_a : kTransposes) {
        for (const Transpose trans_b : kTransposes) {
          std::vector<float> buffer(static_cast<std::size_t>(2 * n * n));
          for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<float>(i * 7 % 9) - 4;
          std::vector<float> c(static_cast<std::size_t>(n * n), NAN);
          const float* a = buffer.data();
          const float* b = buffer.data() + shift;
          multiply({trans_a, trans_b, n, n, n, 1, a, n, b, n, 0, c.data(), n});
          const auto wrong = in_parallel(n, [&](std::int64_t j) -> std::string {
            for (std::int64_t i = 0; i < n; ++i) {
              double sum = 0;
              for (std::int64_t p = 0; p < n; ++p) {
                sum += static_cast<double>(trans_a == Transpose::no ? a[i + p * n] : a[p + i * n]) *
                       (trans_b == Transpose::no ? b[p + j * n] : b[j + p * n]);
              }
              if (c[static_cast<std::size_t>(i + j * n)] != static_cast<float>(sum)) return at(i, j);
            }
            return {};
          });
          if (!wrong.empty()) return wrong + ", B " + std::to_string(shift) + " after A";
        }
      }
    }
  }
  return {};
}

// C over A, wholly and in part, with beta = 0: whatever C becomes, nothing beside it changes.
std::string c_over_a() {
  for (const std::int64_t n : {std::int64_t{8}, big()}) {
    for (const std::int64_t shift : {std::int64_t{0}, std::int64_t{3}, n * (n / 2) + 1}) {
      for (const Order order : kOrders) {
        const std::int64_t ld = n + 2;
        std::vector<float> buffer(static_cast<std::size_t>(3 * ld * n), 0.5F);
        for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<float>(i % 1000);
        const std::vector<float> before = buffer, b(static_cast<std::size_t>(n * n), 0.25F);
        float* c = buffer.data() + shift;
        multiply({Transpose::no, Transpose::yes, n, n, n, 1, buffer.data(), ld, b.data(), n, 0, c, ld},
                 order);
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(buffer.size()); ++i) {
          const std::int64_t in_c = i - shift;
          if (in_c >= 0 && in_c % ld < n && in_c / ld < n) continue;
          if (buffer[static_cast<std::size_t>(i)] != before[static_cast<std::size_t>(i)]) {
            return "element " + std::to_string(i) + " beside C changed";
          }
        }
      }
    }
  }
  return {};
}

// Four row blocks of one C, whose rows interleave in memory: a copy of the whole span back would overwrite
// what the others wrote.
std::string row_blocks() {
  constexpr int kThreads = 4;
  for (const std::int64_t n : {std::int64_t{8}, std::int64_t{64}, big()}) {
    ProductShape shape{n, n, n};
    shape.pad_c = 1;
    shape.beta = 0.5F;
    Product product(shape);
    for (int round = 0; round < 8; ++round) {
      product.restore_c();
      std::vector<std::thread> threads;
      for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&product, n, t] {
          GemmCall part = product.call();
          const std::int64_t begin = n * t / kThreads, end = n * (t + 1) / kThreads;
          part.m = end - begin;
          part.a += begin;
          part.c += begin;
          multiply(part);
        });
      }
      for (std::thread& thread : threads) thread.join();
      if (auto wrong = product.check(); !wrong.empty()) return "n " + std::to_string(n) + ": " + wrong;
    }
  }
  return {};
}

constexpr Scenario kScenarios[] = {
    {"square of 46341", square_of_46341}, {"long leading dimensions", long_leading_dimensions},
    {"shared operands", shared_operands}, {"C over A", c_over_a},
    {"row blocks", row_blocks},
};

}  // namespace

std::span<const Scenario> span_scenarios() {
  return kScenarios;
}

}  // namespace gemmhoist::cases
