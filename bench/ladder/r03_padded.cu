// shared_32_padded: the same with a float of padding a row. Nothing here reads down a column, so there is no
// conflict to remove: padding is a remedy and not a habit. aat_shared_padded shows where it is one.
#include "bench/ladder/shared_tile.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    shared_32_padded(const __grid_constant__ gemmhoist::ladder::Params p) {
  gemmhoist::ladder::shared_tile<32, 1>(p);
}
