// Which of the kernels that deal out by iterations suits a product: the one that a small model of the chip
// says is done first. Pure; no more exact than it has to be to order three kernels.
#pragma once

#include <algorithm>
#include <span>

#include "kernels/stream_k.hpp"

namespace gemmhoist::kernels {

struct Chip {
  std::int32_t sms;
  double flops_per_s;  // of the largest tile on large products
};

// Part of its rate that a kernel keeps which turns operands on their way into shared memory: on an H200 at n
// = 8192 the 64 x 64 tile reaches 48.1 TFLOP/s with neither turned, 36.5 with one and 28.9 with both.
constexpr double layout_efficiency(const KernelDescriptor& kernel) noexcept {
  return kernel.a_k_inner && kernel.b_k_inner ? 0.60 : kernel.a_k_inner || kernel.b_k_inner ? 0.76 : 1;
}

// Part of the FMA rate that a tile's main loop reaches, to a factor that all share: h = tile_m tile_n /
// (tile_m + tile_n) products a loaded element, and a loss of about 5 / h. On an H200 at n = 8192: 128 x
// 256 53.6, 128 x 128 (8 x 16 a thread) 53.1, 64 x 64 47.9 TFLOP/s.
constexpr double tile_efficiency(const KernelDescriptor& kernel) noexcept {
  const double h = static_cast<double>(kernel.tile_m) * kernel.tile_n / (kernel.tile_m + kernel.tile_n);
  constexpr double kLargest = 128.0 * 256 / (128 + 256);
  return (h / (h + 5)) / (kLargest / (kLargest + 5));
}

inline double predicted_seconds(const KernelDescriptor& kernel, const GemmKernelParams& gemm,
                                const Chip& chip) noexcept {
  constexpr double kStart = 4e-6;               // launch, first stages, the tile's way out
  constexpr double kJoin = 2e-6;                // tickets and the last block's turn
  constexpr double kPartBytesPerSecond = 8e10;  // of one SM from the L2
  StreamKParams params{};
  params.gemm = gemm;
  deal_out(kernel, chip.sms, params);
  const double sm_rate = chip.flops_per_s / chip.sms * tile_efficiency(kernel) * layout_efficiency(kernel);
  const double iteration = 2.0 * kernel.tile_m * kernel.tile_n * kernel.tile_k / sm_rate;
  const double resident = kernel.blocks_per_sm;
  double seconds = kStart + static_cast<double>(params.whole) / chip.sms * params.iterations * iteration;
  const auto cut = static_cast<double>(ticket_count(kernel, params));
  if (cut == 0) return seconds;
  // Blocks that share an SM reach its rate together; alone, one reaches it by halves where two are needed to
  // hide latency.
  const double together = std::min(resident, std::max(1.0, static_cast<double>(params.workers) / chip.sms));
  const double sharing = std::max(together, 0.5 * resident);
  seconds += cut * params.iterations / params.workers * sharing * iteration;
  if (params.workers > cut) {
    const double parts = params.workers / cut + 1;
    seconds += kJoin + parts * kernel.tile_m * kernel.tile_n * 4 / kPartBytesPerSecond;
  }
  return seconds;
}

// Turning an operand into a K-outer panel first: a launch, and 8 bytes an element.
inline double preparing_seconds(std::int64_t extent, std::int64_t k) noexcept {
  constexpr double kLaunch = 4e-6, kBytesPerSecond = 3e12;  // one more operand costs 4 us at n = 512
  return kLaunch + 8.0 * static_cast<double>(extent) * static_cast<double>(k) / kBytesPerSecond;
}

// An operand as it lies: which dimension is contiguous, and whether its columns begin at multiples of 16
// bytes.
struct OperandLayout {
  bool k_inner, aligned;
  // A kernel reads it as it lies, or as the panel that preparing makes of it.
  constexpr bool direct(bool kernel_k_inner) const noexcept { return aligned && kernel_k_inner == k_inner; }
  constexpr bool possible(bool kernel_k_inner) const noexcept {
    return direct(kernel_k_inner) || !kernel_k_inner;
  }
};

// Seconds with the preparing that a kernel needs; infinite where it cannot serve.
inline double seconds_with_preparing(const KernelDescriptor& kernel, const GemmKernelParams& gemm,
                                     OperandLayout a, OperandLayout b, const Chip& chip) noexcept {
  if (!a.possible(kernel.a_k_inner) || !b.possible(kernel.b_k_inner)) return 1e300;
  return predicted_seconds(kernel, gemm, chip) +
         (a.direct(kernel.a_k_inner) ? 0 : preparing_seconds(gemm.m, gemm.k)) +
         (b.direct(kernel.b_k_inner) ? 0 : preparing_seconds(gemm.n, gemm.k));
}

// Null where `kernels` has none.
inline const KernelDescriptor* choose_stream_k(std::span<const KernelDescriptor* const> kernels,
                                               const GemmKernelParams& gemm, OperandLayout a, OperandLayout b,
                                               const Chip& chip) noexcept {
  const KernelDescriptor* best = nullptr;
  double best_seconds = 1e300;
  for (const KernelDescriptor* kernel : kernels) {
    if (kernel->role != KernelRole::gemm_stream_k) continue;
    const double seconds = seconds_with_preparing(*kernel, gemm, a, b, chip);
    if (seconds < best_seconds) best = kernel, best_seconds = seconds;
  }
  return best;
}

}  // namespace gemmhoist::kernels
