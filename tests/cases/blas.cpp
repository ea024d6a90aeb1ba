#include "cases/blas.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace gemmhoist::cases {
namespace {

template <class Function>
void bind(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

Library bind_all() {
  Library library{};
  bind(library.cblas_sgemm, "cblas_sgemm");
  if (library.cblas_sgemm == nullptr) {
    (void)dlopen("libopenblas.so.0", RTLD_NOW | RTLD_GLOBAL);
    bind(library.cblas_sgemm, "cblas_sgemm");
  }
  bind(library.sgemm, "sgemm_");
  bind(library.sgemm_with_lengths, "sgemm_");
  bind(library.stat, "gemmhoist_stat");
  bind(library.stat_name, "gemmhoist_stat_name");
  bind(library.gpu_state, "gemmhoist_gpu_state");
  bind(library.set_thread_mode, "gemmhoist_set_thread_mode");
  if (library.cblas_sgemm == nullptr || library.sgemm == nullptr) {
    std::puts("no BLAS in this process");
    std::exit(3);
  }
  return library;
}

int as_int(std::int64_t value) {
  return static_cast<int>(value);
}

}  // namespace

const Library& served_by() {
  static const Library library = bind_all();
  return library;
}

std::uint64_t counter(const char* name) {
  std::uint64_t value = 0;
  if (served_by().stat != nullptr) (void)served_by().stat(name, &value);
  return value;
}

const char* to_string(Order order) {
  return order == Order::row_major ? "row-major" : "column-major";
}

void multiply(const GemmCall& call, Order order) {
  constexpr int kNo = 111, kYes = 112, kConjugate = 113;
  const bool row = order == Order::row_major;
  const auto number = [&](Transpose t) { return t == Transpose::no ? kNo : row ? kConjugate : kYes; };
  const int ta = number(call.trans_a), tb = number(call.trans_b);
  const int m = as_int(call.m), n = as_int(call.n), k = as_int(call.k);
  const int lda = as_int(call.lda), ldb = as_int(call.ldb), ldc = as_int(call.ldc);
  const int as_order = static_cast<int>(order);
  if (row) {
    served_by().cblas_sgemm(as_order, tb, ta, n, m, k, call.alpha, call.b, ldb, call.a, lda, call.beta,
                            call.c, ldc);
  } else {
    served_by().cblas_sgemm(as_order, ta, tb, m, n, k, call.alpha, call.a, lda, call.b, ldb, call.beta,
                            call.c, ldc);
  }
}

void multiply_fortran(const GemmCall& call) {
  const int m = as_int(call.m), n = as_int(call.n), k = as_int(call.k);
  const int lda = as_int(call.lda), ldb = as_int(call.ldb), ldc = as_int(call.ldc);
  const char ta = to_char(call.trans_a), tb = to_char(call.trans_b);
  served_by().sgemm(&ta, &tb, &m, &n, &k, &call.alpha, call.a, &lda, call.b, &ldb, &call.beta, call.c, &ldc);
}

std::int64_t big() {
  const char* text = std::getenv("CASES_BIG");
  return text == nullptr ? 300 : std::strtol(text, nullptr, 10);
}

std::string right(const test::ProductShape& shape, Order order, std::uint32_t seed) {
  const test::Product product(shape, test::Values::symmetric, seed);
  multiply(product.call(), order);
  const std::string wrong = product.check();
  return wrong.empty() ? wrong : test::to_string(shape) + ", " + to_string(order) + ": " + wrong;
}

std::string right_in_all_ways(test::ProductShape shape, test::Values values) {
  for (const Transpose trans_a : kTransposes) {
    for (const Transpose trans_b : kTransposes) {
      shape.trans_a = trans_a;
      shape.trans_b = trans_b;
      test::Product product(shape, values);
      for (const Order order : kOrders) {
        product.restore_c();
        multiply(product.call(), order);
        const std::string wrong = product.check();
        if (!wrong.empty()) return test::to_string(shape) + ", " + to_string(order) + ": " + wrong;
      }
    }
  }
  return {};
}

std::string big_right(std::uint32_t seed) {
  test::ProductShape shape;
  shape.m = big();
  shape.n = big() - 3;
  shape.k = big() / 2 + 1;
  shape.pad_c = 3;
  shape.beta = 0.5F;
  return right(shape, Order::column_major, seed);
}

std::string in_parallel(std::int64_t count, const std::function<std::string(std::int64_t)>& f) {
  std::vector<std::string> complaints(static_cast<std::size_t>(count));
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    for (std::int64_t i = next++; i < count; i = next++) complaints[static_cast<std::size_t>(i)] = f(i);
  };
  const std::int64_t width = std::min<std::int64_t>(count, std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::thread> threads;
  for (std::int64_t i = 1; i < width; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  for (const std::string& complaint : complaints) {
    if (!complaint.empty()) return complaint;
  }
  return {};
}

}  // namespace gemmhoist::cases
