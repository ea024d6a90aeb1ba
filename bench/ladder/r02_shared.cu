// shared_16, shared_32: tiles in shared memory, one element of C a thread. Global traffic falls by the tile's
// edge; now every FMA reads two floats of shared memory, and that is the bound.
#include "bench/ladder/shared_tile.cuh"

extern "C" __global__ void __launch_bounds__(256)
    shared_16(const __grid_constant__ gemmhoist::ladder::Params p) {
  gemmhoist::ladder::shared_tile<16, 0>(p);
}

extern "C" __global__ void __launch_bounds__(1024)
    shared_32(const __grid_constant__ gemmhoist::ladder::Params p) {
  gemmhoist::ladder::shared_tile<32, 0>(p);
}
