#include "accuracy.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include "core/checked.hpp"
#include "cublas.hpp"
#include "prepared.hpp"

namespace gemmhoist::gpu_kernels {
namespace {

// The first three are those of the measured references; the others ask how often fp32 has to step in.
enum class Data { signed_unit, unit, wide_exponents, softmax, subnormals_strewn };
constexpr Data kData[] = {Data::signed_unit, Data::unit, Data::wide_exponents, Data::softmax,
                          Data::subnormals_strewn};
const char* to_string(Data data) {
  switch (data) {
    case Data::signed_unit:
      return "U(-1,1)";
    case Data::unit:
      return "U(0,1)";
    case Data::wide_exponents:
      return "U(-1,1) x 2^(-30..30)";
    case Data::softmax:
      return "softmax of N(0,5^2) x U(-1,1)";
    case Data::subnormals_strewn:
      return "U(-1,1), 1 of 10^6 subnormal";
  }
  return "?";
}

// K-outer; `a`: the left operand.
void fill(Data data, bool a, std::int64_t extent, std::int64_t k, std::vector<float>& panel,
          std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(data == Data::unit ? 0.0f : -1.0f, 1.0f);
  std::uniform_int_distribution<int> exponent(-30, 30), million(0, 999999);
  std::normal_distribution<float> normal(0.0f, 5.0f);
  for (float& value : panel) {
    if (data == Data::softmax && a)
      value = std::exp(normal(random) - 15.0f);
    else if (data == Data::wide_exponents)
      value = std::ldexp(uniform(random), exponent(random));
    else
      value = uniform(random);
    if (data == Data::subnormals_strewn && million(random) == 0) value = std::ldexp(value, -130);
  }
  if (data != Data::softmax || !a) return;
  for (std::int64_t i = 0; i < extent; ++i) {  // rows sum to one
    double sum = 0;
    for (std::int64_t p = 0; p < k; ++p)
      sum += static_cast<double>(panel[static_cast<std::size_t>(i + p * extent)]);
    for (std::int64_t p = 0; p < k; ++p) {
      float& value = panel[static_cast<std::size_t>(i + p * extent)];
      value = static_cast<float>(static_cast<double>(value) / sum);
    }
  }
}

struct Columns {
  std::vector<std::int64_t> index;
  std::vector<double> sum, magnitude;  // m a column
};

Columns columns_in_fp64(const std::vector<float>& a, const std::vector<float>& b, std::int64_t m,
                        std::int64_t n, std::int64_t k) {
  constexpr std::int64_t kWanted = 48;
  Columns columns;
  const std::int64_t count = std::min(kWanted, n);
  for (std::int64_t c = 0; c < count; ++c) columns.index.push_back(c * n / count);
  columns.sum.resize(static_cast<std::size_t>(count * m));
  columns.magnitude.resize(columns.sum.size());
  std::vector<std::thread> threads;
  const std::int64_t workers = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, count);
  for (std::int64_t w = 0; w < workers; ++w)
    threads.emplace_back([&, w] {
      for (std::int64_t c = w; c < count; c += workers) {
        double* const sum = columns.sum.data() + c * m;
        double* const magnitude = columns.magnitude.data() + c * m;
        for (std::int64_t p = 0; p < k; ++p) {
          const double x = b[static_cast<std::size_t>(columns.index[static_cast<std::size_t>(c)] + p * n)];
          const float* const row = a.data() + p * m;
          for (std::int64_t i = 0; i < m; ++i) {
            const double term = static_cast<double>(row[i]) * x;
            sum[i] += term;
            magnitude[i] += std::fabs(term);
          }
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  return columns;
}

void print_errors(const char* name, const char* data, const std::vector<float>& c, const Columns& columns,
                  std::int64_t m, std::int64_t ldc, double share) {
  double error2 = 0, size2 = 0, largest = 0, signed_sum = 0;
  for (std::size_t column = 0; column < columns.index.size(); ++column)
    for (std::int64_t i = 0; i < m; ++i) {
      const auto at = column * static_cast<std::size_t>(m) + static_cast<std::size_t>(i);
      const double got = static_cast<double>(c[static_cast<std::size_t>(i + columns.index[column] * ldc)]);
      const double error = got - columns.sum[at], unit = 0x1p-24 * columns.magnitude[at];
      error2 += error * error;
      size2 += columns.sum[at] * columns.sum[at];
      if (unit > 0) {
        largest = std::max(largest, std::fabs(error) / unit);
        signed_sum += error / unit;
      }
      if (!(std::fabs(error) >= 0)) largest = std::numeric_limits<double>::infinity();
    }
  std::printf("%-36s %-31s relF %9.3e  max %9.3f  mean %9.4f  fp32 tiles %.4f\n", name, data,
              std::sqrt(error2 / size2), largest, signed_sum / static_cast<double>(columns.sum.size()),
              share);
  std::fflush(stdout);
}

void print_accuracy(Gpu& gpu, const std::vector<const KernelDescriptor*>& kernels, const Cublas& cublas,
                    bench::Extents shape, Data data) {
  std::mt19937 random(7);
  const std::int64_t m = round_up(shape.m, kPanelAlignment), n = round_up(shape.n, kPanelAlignment);
  const std::int64_t k = round_up(shape.k, kImageK);
  std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(n * k));
  fill(data, true, m, k, a, random);
  fill(data, false, n, k, b, random);
  const Columns columns = columns_in_fp64(a, b, m, n, k);
  const Buffer a_device(gpu, a), b_device(gpu, b), c_device(gpu, static_cast<std::size_t>(m * n));
  std::vector<float> c(static_cast<std::size_t>(m * n));
  const auto narrow = [](std::int64_t extent) { return static_cast<std::int32_t>(extent); };
  const GemmKernelParams params{a_device.device(), b_device.device(), c_device.device(), m,    n, m,
                                narrow(m),         narrow(n),         narrow(k),         1.0f, 0};
  const auto show = [&](const char* name, double share) {
    gpu.synchronize();
    c_device.download(c);
    print_errors(name, to_string(data), c, columns, m, m, share);
  };
  for (const CublasMode mode : {CublasMode::fp32, CublasMode::tf32})
    if (cublas.usable() && cublas.multiply(params, mode))
      show(mode == CublasMode::fp32 ? "cublas" : "cublas_tf32", 0);
  for (const KernelDescriptor* kernel : kernels) {
    if (kernel->role == KernelRole::gemm) {
      if (m % kernel->tile_m != 0 || n % kernel->tile_n != 0 || k % kernel->tile_k != 0) continue;
      gpu.launch(*kernel, params);
      show(kernel->name, 0);
    } else if (companions(*kernel).prepare != nullptr) {
      const PreparedProduct product(gpu, companions(*kernel), params, narrow(k), {params.a, 1, m},
                                    {params.b, 1, n});
      product.prepare();
      product.multiply();
      gpu.synchronize();
      show(kernel->name, share_out_of_range(product));
    }
  }
}

}  // namespace

void print_accuracy(Gpu& gpu, const std::vector<const KernelDescriptor*>& kernels,
                    const std::vector<bench::Extents>& shapes) {
  const Cublas cublas;
  for (const bench::Extents shape : shapes)
    for (const Data data : kData) {
      std::printf("%d x %d x %d\n", shape.m, shape.n, shape.k);
      print_accuracy(gpu, kernels, cublas, shape, data);
    }
}

}  // namespace gemmhoist::gpu_kernels
