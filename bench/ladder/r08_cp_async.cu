// cp_async_stages: four stages in shared memory, filled by cp.async (ring.cuh). What waits for global memory
// is the hardware, three tiles ahead, and no register holds what is on its way.
#include "bench/ladder/ring.cuh"

extern "C" __global__ void __launch_bounds__(256, 2)
    cp_async_stages(const __grid_constant__ gemmhoist::ladder::Params p) {
  using namespace gemmhoist::ladder;
  extern __shared__ float4 memory[];
  const int x = threadIdx.x % 16 * 4, y = threadIdx.x / 16 * 4;
  const Ring ring{p, reinterpret_cast<float*>(memory), static_cast<int>(blockIdx.y) * Ring::kTile,
                  static_cast<int>(blockIdx.x) * Ring::kTile};
  Sums sums;
  multiply<64, 64>(ring, y, x, sums);
  sums.store(p, ring.row0 + y, 64, ring.col0 + x, 64);
}
