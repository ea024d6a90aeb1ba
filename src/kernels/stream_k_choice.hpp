// Which of the kernels that deal out by iterations suits a product: the one that a small model of the chip
// says is done first. Pure; no more exact than it has to be to order three tiles. Its constants are fitted to
// the candidates' times on an H200 (bench/results/2026-11-30-fp32-shapes-2.md), where the tile that it picks
// takes 0.1 % longer than the best one, taken over all cases.
#pragma once

#include <algorithm>
#include <span>

#include "kernels/stream_k.hpp"

namespace gemmhoist::kernels {

struct Chip {
  std::int32_t sms;
  double flops_per_s;  // of the largest tile on large products
};

// Part of the largest tile's rate that a tile's main loop reaches, by the outputs of a thread: 128, 64 and 32
// are 6, 4 and 3 loads of 16 bytes a step. 53.3, 50.5 and 44 TFLOP/s.
constexpr double tile_efficiency(const KernelDescriptor& kernel) noexcept {
  const int outputs = kernel.tile_m * kernel.tile_n / kernel.threads;
  return outputs >= 128 ? 1.0 : outputs >= 64 ? 0.947 : 0.826;
}

// Copies of 4 bytes that a thread makes for each of its FMAs take as much time as those.
constexpr double copy_efficiency(const KernelDescriptor& kernel) noexcept {
  double copies = 0;
  if (kernel.a_k_inner || kernel.any_alignment) copies += 1.0 / kernel.tile_n;
  if (kernel.b_k_inner || kernel.any_alignment) copies += 1.0 / kernel.tile_m;
  return 1 / (1 + copies);
}

inline double predicted_seconds(const KernelDescriptor& kernel, const GemmKernelParams& gemm,
                                const Chip& chip) noexcept {
  constexpr double kStart = 5e-6;  // launch, first stages, the last tile's way out
  constexpr double kTile = 6e-6;  // start and end of a tile; the other blocks of an SM hide their share of it
  constexpr double kJoin = 1e-6;  // tickets, and the last block's turn
  constexpr double kPart = 1.2e-6;  // of each part that the last block adds up: the way to the L2,
  constexpr double kPartBytesPerSecond = 8e10;  // and what one SM brings from there
  StreamKParams params{};
  params.gemm = gemm;
  deal_out(kernel, chip.sms, params);
  const double sm_rate = chip.flops_per_s / chip.sms * tile_efficiency(kernel) * copy_efficiency(kernel);
  const double tile = std::max(gemm.k, kernel.tile_k) * 2.0 * kernel.tile_m * kernel.tile_n / sm_rate;
  const double resident = kernel.blocks_per_sm;
  double seconds =
      kStart + static_cast<double>(params.whole) / chip.sms * (tile + kTile / (resident * resident));
  const auto cut = static_cast<double>(ticket_count(kernel, params));
  if (cut == 0) return seconds;
  // Blocks that share an SM reach its rate together; alone, one of four reaches more than its share of it.
  constexpr double kAlone = 0.4;
  const double together = std::min(resident, std::max(1.0, static_cast<double>(params.workers) / chip.sms));
  seconds += cut / params.workers * std::max(together, kAlone * resident) * tile + kTile;
  if (params.workers > cut) {
    // One more than its share where parts do not end with tiles.
    const double parts = params.workers / cut + (params.workers % ticket_count(kernel, params) == 0 ? 0 : 1);
    seconds += kJoin + parts * (kPart + kernel.tile_m * kernel.tile_n * 4 / kPartBytesPerSecond);
  }
  return seconds;
}

// An operand as it lies: which dimension is contiguous, and whether columns begin at multiples of 16 bytes.
struct OperandLayout {
  bool k_inner, aligned;
};

constexpr bool serves(const KernelDescriptor& kernel, OperandLayout a, OperandLayout b) noexcept {
  const auto reads = [&](OperandLayout operand, bool k_inner) {
    return operand.k_inner == k_inner && (operand.aligned || k_inner || kernel.any_alignment);
  };
  return kernel.role == KernelRole::gemm_stream_k && reads(a, kernel.a_k_inner) && reads(b, kernel.b_k_inner);
}

// Null where none of `kernels` serves.
inline const KernelDescriptor* choose_stream_k(std::span<const KernelDescriptor* const> kernels,
                                               const GemmKernelParams& gemm, OperandLayout a, OperandLayout b,
                                               const Chip& chip) noexcept {
  const KernelDescriptor* best = nullptr;
  double best_seconds = 1e300;
  for (const KernelDescriptor* kernel : kernels) {
    if (!serves(*kernel, a, b)) continue;
    const double seconds = predicted_seconds(*kernel, gemm, chip);
    if (seconds < best_seconds) best = kernel, best_seconds = seconds;
  }
  return best;
}

}  // namespace gemmhoist::kernels
