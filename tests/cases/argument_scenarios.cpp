// Arguments of the Fortran name as programs pass them: letters in either case, whole words with their hidden
// lengths, and without; an illegal call between legal ones.
#include <cstring>
#include <string>

#include "cases/blas.hpp"
#include "cases/scenario.hpp"

namespace gemmhoist::cases {
namespace {

using test::Product;
using test::ProductShape;

Transpose meaning(const std::string& word) {
  return word[0] == 'n' || word[0] == 'N' ? Transpose::no : Transpose::yes;
}

std::string letters() {
  const std::string words[] = {
      "N", "n", "T", "t", "C", "c", "No transpose", "Transpose", "conjugate transpose"};
  for (const std::int64_t n : {std::int64_t{8}, big()}) {
    for (const std::string& a_word : words) {
      for (const std::string& b_word : words) {
        if (n > 8 && a_word.size() == 1 && b_word.size() == 1) continue;
        const Product product(ProductShape{n, n + 1, n - 1, meaning(a_word), meaning(b_word)});
        const GemmCall call = product.call();
        const int m = static_cast<int>(call.m), cols = static_cast<int>(call.n), k = static_cast<int>(call.k);
        const int lda = static_cast<int>(call.lda), ldb = static_cast<int>(call.ldb),
                  ldc = static_cast<int>(call.ldc);
        if (a_word.size() == 1) {
          served_by().sgemm(a_word.data(), b_word.data(), &m, &cols, &k, &call.alpha, call.a, &lda, call.b,
                            &ldb, &call.beta, call.c, &ldc);
        } else {
          served_by().sgemm_with_lengths(a_word.data(), b_word.data(), &m, &cols, &k, &call.alpha, call.a,
                                         &lda, call.b, &ldb, &call.beta, call.c, &ldc, a_word.size(),
                                         b_word.size());
        }
        if (auto wrong = product.check(); !wrong.empty()) return a_word + ", " + b_word + ": " + wrong;
      }
    }
  }
  return {};
}

// Prints the reports of OpenBLAS between; the driver compares them with those of a plain process.
std::string illegal_between_legal() {
  for (const Order order : kOrders) {
    Product product(ProductShape{8, 9, 7});
    GemmCall call = product.call();
    call.ldc = 1;
    multiply(call, order);
    call = product.call();
    call.k = -1;
    multiply(call, order);
    call.m = -1;
    multiply_fortran(call);
    for (std::size_t i = 0; i < product.c_size(); ++i) {
      if (product.c()[i] == product.c()[i]) return "an illegal call touched C";
    }
    multiply(product.call(), order);
    if (auto wrong = product.check(); !wrong.empty()) return "after illegal calls: " + wrong;
    if (auto wrong = big_right(); !wrong.empty()) return "after illegal calls: " + wrong;
  }
  return {};
}

constexpr Scenario kScenarios[] = {{"letters", letters}, {"illegal between legal", illegal_between_legal}};

}  // namespace

std::span<const Scenario> argument_scenarios() {
  return kScenarios;
}

}  // namespace gemmhoist::cases
