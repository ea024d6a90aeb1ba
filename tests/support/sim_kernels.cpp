#include "support/sim_kernels.hpp"

#include <algorithm>
#include <cstring>

namespace gemmhoist::test {
namespace {

constexpr KernelDescriptor gemm(const char* name, int m, int n, int k, int blocks_per_sm) {
  return {name, KernelRole::gemm, Precision::fp32, 75, m, n, k, 2, 256, 0, blocks_per_sm};
}
constexpr KernelDescriptor kTranspose{
    "sim_transpose_64x64", KernelRole::transpose, Precision::fp32, 75, 64, 64, 1, 1, 256, 0, 2};

// Products of images. The tiles are the shipped kernels': an image's units leave no choice.
constexpr KernelDescriptor kBf16x6{
    "sgemm_sim_bf16x6", KernelRole::gemm_prepared, Precision::bf16x6, 75, 128, 128, 32, 2, 256, 0, 1};
constexpr KernelDescriptor kTf32{
    "sgemm_sim_tf32", KernelRole::gemm_prepared, Precision::tf32, 75, 256, 128, 32, 2, 256, 0, 1};
constexpr KernelDescriptor kPrepareBf16x6{
    "sim_prepare_bf16x6", KernelRole::prepare, Precision::bf16x6, 75, 128, 32, 1, 1, 256, 0, 2};
constexpr KernelDescriptor kPrepareTf32{
    "sim_prepare_tf32", KernelRole::prepare, Precision::tf32, 75, 128, 32, 1, 1, 256, 0, 2};
constexpr KernelDescriptor kLeftover{
    "sgemm_sim_leftover", KernelRole::gemm_leftover, Precision::bf16x6, 75, 128, 128, 16, 2, 256, 0, 1};

constexpr KernelDescriptor kSmall[] = {gemm("sgemm_sim_64x64x16", 64, 64, 16, 1),
                                       gemm("sgemm_sim_64x32x8", 64, 32, 8, 1),
                                       gemm("sgemm_sim_16x16x8", 16, 16, 8, 1),
                                       kTranspose,
                                       kBf16x6,
                                       kTf32,
                                       kPrepareBf16x6,
                                       kPrepareTf32,
                                       kLeftover};
constexpr KernelDescriptor kReal[] = {gemm("sgemm_sim_128x256x32", 128, 256, 32, 1),
                                      gemm("sgemm_sim_128x128x16", 128, 128, 16, 1),
                                      gemm("sgemm_sim_64x64x16", 64, 64, 16, 1),
                                      gemm("sgemm_sim_16x16x8", 16, 16, 8, 1),
                                      kTranspose,
                                      kBf16x6,
                                      kTf32,
                                      kPrepareBf16x6,
                                      kPrepareTf32,
                                      kLeftover};

// 16 rows by 4 columns of C in registers, whatever the compiler makes of the vectors.
using Vector [[gnu::vector_size(16)]] = float;
constexpr int kRows = 16, kCols = 4, kLanes = 4, kVectors = kRows / kLanes;

void full_block(const GemmKernelParams& p, std::int64_t i, std::int64_t j) {
  Vector sum[kCols][kVectors] = {};
  for (std::int64_t q = 0; q < p.k; ++q) {
    const float* a = p.a + i + q * p.lda;
    const float* b = p.b + j + q * p.ldb;
    Vector x[kVectors];
    std::memcpy(x, a, sizeof(x));
    for (int c = 0; c < kCols; ++c) {
      for (int v = 0; v < kVectors; ++v) sum[c][v] += x[v] * b[c];
    }
  }
  for (int c = 0; c < kCols; ++c) {
    float* out = p.c + i + (j + c) * p.ldc;
    float value[kRows];
    std::memcpy(value, sum[c], sizeof(value));
    for (int r = 0; r < kRows; ++r) out[r] = p.alpha * (value[r] + (p.accumulate != 0 ? out[r] : 0.0F));
  }
}

void edge_block(const GemmKernelParams& p, std::int64_t i, std::int64_t j, std::int64_t rows,
                std::int64_t cols) {
  for (std::int64_t c = 0; c < cols; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) {
      float sum = 0;
      for (std::int64_t q = 0; q < p.k; ++q) sum += p.a[i + r + q * p.lda] * p.b[j + c + q * p.ldb];
      float& out = p.c[i + r + (j + c) * p.ldc];
      out = p.alpha * (sum + (p.accumulate != 0 ? out : 0.0F));
    }
  }
}

}  // namespace

std::span<const KernelDescriptor> sim_kernels(TileSizes tiles) {
  if (tiles == TileSizes::small) return kSmall;
  return kReal;
}

// One block an SM at a time, at the SM's whole rate: how blocks share an SM changes little of a makespan.
int sim_slots(const SimulationSettings& settings) {
  return settings.sm_count;
}

double sim_block_seconds(const SimulationSettings& settings, const KernelDescriptor& kernel, std::int64_t k) {
  const double flops = 2.0 * kernel.tile_m * kernel.tile_n * static_cast<double>(k);
  const double speedup = kernel.role == KernelRole::gemm_prepared ? settings.image_speedup : 1;
  return flops * settings.sm_count / (settings.kernel_flops_per_s * speedup);
}

void sim_gemm(const GemmKernelParams& params) {
  for (std::int64_t j = 0; j < params.n; j += kCols) {
    const std::int64_t cols = std::min<std::int64_t>(kCols, params.n - j);
    for (std::int64_t i = 0; i < params.m; i += kRows) {
      const std::int64_t rows = std::min<std::int64_t>(kRows, params.m - i);
      if (rows == kRows && cols == kCols) {
        full_block(params, i, j);
      } else {
        edge_block(params, i, j, rows, cols);
      }
    }
  }
}

void sim_transpose(const TransposeKernelParams& params) {
  for (std::int64_t row = 0; row < params.rows; ++row) {
    for (std::int64_t col = 0; col < params.cols; ++col) {
      params.destination[row + col * params.ld_destination] = params.source[col + row * params.ld_source];
    }
  }
}

}  // namespace gemmhoist::test
