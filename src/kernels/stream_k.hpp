// Stream-K: a product whose work is dealt out by iterations of k instead of by tiles of C.
//
// A grid of tiles is served in waves, and the last wave leaves SMs idle: at n = 8192 the 2048 tiles of 128 x
// 256 are 15.5 waves of an H200, and 16 are paid for; a 512 x 512 product has 8 tiles for 132 SMs however
// deep it is. So only full waves are made of whole tiles. The rest of the tiles is one line of iterations
// (tile by tile, and within a tile along k) that is cut into equal pieces, one a worker. A tile that is cut
// is summed from its parts in the order of k: the bits depend on the shape and the number of workers, and on
// nothing that happens while it runs.
//
// The idea is that of Osama et al., "Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix
// Multiplication on the GPU" (2023); here the block that comes last to a tile sums it, so that none waits for
// another.
#pragma once

#include <cstdint>

#include "core/kernel_descriptor.hpp"
#include "kernels/tile_order.hpp"

namespace gemmhoist::kernels {

// `gemm` as GemmKernelParams, but a and b may be a caller's own matrices: not padded, of any k. An operand is
// K-outer (a[i + p lda]) or, where the descriptor says so, K-inner (a[p + i lda]). Pointers and leading
// dimensions of a and b are multiples of 16 bytes; those of c need not be. Nothing outside a matrix is read
// but up to three floats that complete a quad of its contiguous dimension.
struct StreamKParams {
  GemmKernelParams gemm;
  float* partials;          // two tiles a worker; may be null where no tile is cut
  std::uint32_t* tickets;   // one a tile that is not whole; zero before the launch, and after it
  std::int32_t whole;       // tiles, and blocks, that are made at once: the first ones
  std::int32_t workers;     // blocks that share the iterations of the others
  std::int32_t iterations;  // of one tile: k over tile_k, rounded up
};

// Fewer iterations than this do not pay for a part's own start and sum.
inline constexpr std::int32_t kShortestPart = 4;

// Iterations of the tiles that are cut, and where worker w's piece begins in them.
GEMMHOIST_HOST_DEVICE constexpr std::int64_t piece_begin(std::int64_t worker, std::int64_t workers,
                                                         std::int64_t iterations) noexcept {
  return worker * (iterations / workers) + worker * (iterations % workers) / workers;
}

// The worker whose piece holds iteration `at`.
GEMMHOIST_HOST_DEVICE constexpr std::int64_t worker_of(std::int64_t at, std::int64_t workers,
                                                       std::int64_t iterations) noexcept {
  std::int64_t worker = (at + 1) * workers / (iterations + 1);
  while (piece_begin(worker, workers, iterations) > at) --worker;
  while (piece_begin(worker + 1, workers, iterations) <= at) ++worker;
  return worker;
}

// Deals a product out to `sms` SMs. Fills what follows `gemm` but for the pointers.
constexpr void deal_out(const KernelDescriptor& kernel, std::int32_t sms, StreamKParams& params) noexcept {
  const std::int64_t tiles =
      std::int64_t{tiles_over(params.gemm.m, kernel.tile_m)} * tiles_over(params.gemm.n, kernel.tile_n);
  const std::int64_t wave = std::int64_t{sms} * kernel.blocks_per_sm;
  params.iterations = static_cast<std::int32_t>(tiles_over(params.gemm.k, kernel.tile_k));
  params.whole = static_cast<std::int32_t>(tiles / wave * wave);
  const std::int64_t left = tiles - params.whole;
  const std::int64_t most = left * params.iterations / kShortestPart;
  std::int64_t workers = wave < most ? wave : most;
  // A worker that had more than a whole tile would gain nothing by the cut.
  if (workers < left) workers = left;
  params.workers = static_cast<std::int32_t>(workers);
}

// Blocks of the launch, one-dimensional.
constexpr std::int64_t blocks_of(const StreamKParams& params) noexcept {
  return std::int64_t{params.whole} + params.workers;
}

constexpr std::int64_t partial_floats(const KernelDescriptor& kernel, const StreamKParams& params) noexcept {
  return std::int64_t{2} * params.workers * kernel.tile_m * kernel.tile_n;
}

constexpr std::int64_t ticket_count(const KernelDescriptor& kernel, const StreamKParams& params) noexcept {
  return std::int64_t{tiles_over(params.gemm.m, kernel.tile_m)} * tiles_over(params.gemm.n, kernel.tile_n) -
         params.whole;
}

}  // namespace gemmhoist::kernels
