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
// K-outer (a[i + p lda]) or, where the descriptor says so, K-inner (a[p + i lda]). Pointer and leading
// dimension of a K-outer operand are multiples of 16 bytes, unless the descriptor says that any will do;
// those of others and of c need not be. Nothing outside a matrix is read, but up to three floats that
// complete a quad of a K-outer operand that has to be aligned.
struct StreamKParams {
  GemmKernelParams gemm;
  float* partials;          // two tiles a worker; may be null where no tile is cut
  std::uint32_t* tickets;   // one a tile that is not whole; zero before the launch, and after it
  std::int32_t whole;       // tiles, and blocks, that are made at once: the first ones
  std::int32_t workers;     // blocks that share the iterations of the others
  std::int32_t iterations;  // of one tile: k over tile_k, rounded up
  std::int32_t piece_rest;  // iterations of the tiles that are cut, over the workers: what is left over,
  std::int64_t piece;       // and how many each has
};

// FMAs of the shortest part of a tile: fewer do not pay for a part's own start and its sum. At n = 512 on an
// H200 the 64 x 64 tile takes 15.7 us in parts of 2^18, 13.6 of 2^19, 12.7 of 2^20, and 17.4 uncut.
inline constexpr std::int64_t kShortestPart = 1 << 20;

// FMAs of an SM, whose time joining the parts of tiles that are cut anywhere takes more than of tiles that
// are cut into equal ones: 8192 cycles, or 4 us of an H200.
inline constexpr std::int64_t kLongerForFewerParts = 1 << 20;

// Where worker w's piece begins, in iterations of the tiles that are cut; w may be `workers`.
GEMMHOIST_HOST_DEVICE constexpr std::int64_t piece_begin(const StreamKParams& params,
                                                         std::int32_t worker) noexcept {
  // Below 2^32, since workers are no more than fit the chip at once.
  const auto rest = static_cast<std::uint32_t>(worker) * static_cast<std::uint32_t>(params.piece_rest) /
                    static_cast<std::uint32_t>(params.workers);
  return worker * params.piece + rest;
}

// floor(x y / z) of what is less than the workers each.
GEMMHOIST_HOST_DEVICE constexpr std::int32_t share(std::int32_t x, std::int32_t y, std::int32_t z) noexcept {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(x) * static_cast<std::uint32_t>(y) /
                                   static_cast<std::uint32_t>(z));
}

// Of `cut` tiles, the one in which worker w's piece begins. Pieces begin at floor(w cut iterations /
// workers).
GEMMHOIST_HOST_DEVICE constexpr std::int32_t tile_of_piece(const StreamKParams& params, std::int32_t worker,
                                                           std::int32_t cut) noexcept {
  const std::int32_t tile = share(worker, cut, params.workers);
  return std::int64_t{tile} * params.iterations > piece_begin(params, worker) ? tile - 1 : tile;
}

// The workers whose pieces hold a tile's first and last iteration.
GEMMHOIST_HOST_DEVICE constexpr std::int32_t first_worker_of(const StreamKParams& params, std::int32_t tile,
                                                             std::int32_t cut) noexcept {
  const std::int32_t worker = share(tile, params.workers, cut);
  return piece_begin(params, worker + 1) <= std::int64_t{tile} * params.iterations ? worker + 1 : worker;
}
GEMMHOIST_HOST_DEVICE constexpr std::int32_t last_worker_of(const StreamKParams& params, std::int32_t tile,
                                                            std::int32_t cut) noexcept {
  const std::int32_t worker = share(tile + 1, params.workers, cut);
  return piece_begin(params, worker) >= (std::int64_t{tile} + 1) * params.iterations ? worker - 1 : worker;
}

// Deals a product out to `sms` SMs. Fills what follows `gemm` but for the pointers.
constexpr void deal_out(const KernelDescriptor& kernel, std::int32_t sms, StreamKParams& params) noexcept {
  const std::int64_t tiles =
      std::int64_t{tiles_over(params.gemm.m, kernel.tile_m)} * tiles_over(params.gemm.n, kernel.tile_n);
  const std::int64_t wave = std::int64_t{sms} * kernel.blocks_per_sm;
  params.iterations = static_cast<std::int32_t>(tiles_over(params.gemm.k, kernel.tile_k));
  params.whole = static_cast<std::int32_t>(tiles / wave * wave);
  const std::int64_t left = tiles - params.whole;
  if (left == 0) {
    params.workers = 0, params.piece = 0, params.piece_rest = 0;
    return;
  }
  const std::int64_t all = left * params.iterations;
  const std::int64_t iteration = std::int64_t{kernel.tile_m} * kernel.tile_n * kernel.tile_k;
  const std::int64_t most = all / ((kShortestPart - 1) / iteration + 1);
  std::int64_t workers = wave < most ? wave : most;
  // A worker that had more than a whole tile would gain nothing by the cut.
  if (workers < left) workers = left;
  // Pieces that end where tiles do have fewer parts to join, and are not to be much longer for it.
  const std::int64_t parts = workers / left;
  const std::int64_t longer = (params.iterations - 1) / parts - (all - 1) / workers;
  if (longer * iteration * kernel.blocks_per_sm <= kLongerForFewerParts) workers = left * parts;
  params.workers = static_cast<std::int32_t>(workers);
  params.piece = all / workers;
  params.piece_rest = static_cast<std::int32_t>(all % workers);
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
