// The BLAS that this process has: bound as a program's own calls are, by the first definition in the global
// scope. That is the library where it is preloaded, and OpenBLAS in a process that compares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "core/gemm_call.hpp"
#include "support/product.hpp"

namespace gemmhoist::cases {

using CblasSgemm = void(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a,
                        int lda, const float* b, int ldb, float beta, float* c, int ldc);
using Sgemm = void(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,
                   const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                   const float* beta, float* c, const int* ldc);

// The same name as a Fortran compiler calls it: the lengths of both words at the end.
using SgemmWithLengths = void(const char* trans_a, const char* trans_b, const int* m, const int* n,
                              const int* k, const float* alpha, const float* a, const int* lda,
                              const float* b, const int* ldb, const float* beta, float* c, const int* ldc,
                              std::size_t length_a, std::size_t length_b);

struct Library {
  CblasSgemm* cblas_sgemm;
  Sgemm* sgemm;
  SgemmWithLengths* sgemm_with_lengths;
  // Null in a process without the library.
  int (*stat)(const char*, std::uint64_t*);
  const char* (*stat_name)(std::size_t);
  const char* (*gpu_state)();
  int (*set_thread_mode)(int);
};
const Library& served_by();
std::uint64_t counter(const char* name);

enum class Order : int { row_major = 101, column_major = 102 };
constexpr Order kOrders[] = {Order::column_major, Order::row_major};
constexpr Transpose kTransposes[] = {Transpose::no, Transpose::yes};
const char* to_string(Order order);

// The same product in either order: row-major with A and B exchanged. CblasConjTrans stands for transposed in
// row-major calls, so that both are met.
void multiply(const GemmCall& call, Order order = Order::column_major);
// The same through the Fortran name.
void multiply_fortran(const GemmCall& call);

// The extent of a product that goes to the GPU on this vehicle.
std::int64_t big();

// `shape` in both orders and all transposes, each product right; else what is wrong first.
std::string right_in_all_ways(test::ProductShape shape, test::Values values = test::Values::symmetric);
// One product in one order.
std::string right(const test::ProductShape& shape, Order order = Order::column_major, std::uint32_t seed = 1);
// A product of the extents that `big` says, with beta = 0.5.
std::string big_right(std::uint32_t seed = 1);

// f(0) to f(count - 1) on all CPUs; the first complaint by index.
std::string in_parallel(std::int64_t count, const std::function<std::string(std::int64_t)>& f);

}  // namespace gemmhoist::cases
