// CUDA on the CPU: just enough of the language to compile the kernels' own source as C++ and run a grid,
// block by block, each thread of a block a fiber. A wrong index, a missing wait or a barrier in the wrong
// place is then found without a GPU, at the price of seconds.
//
// What it can show: bounds (operands end at pages without access, shared memory is fenced), values, reads of
// shared memory that nothing wrote (it starts as NaN), waits that come too late (copies land as late as the
// rules allow) or stages reused too early (they land at once), and dependence on the order of threads between
// barriers.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>

struct alignas(16) float4 {
  float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}

struct alignas(8) float2 {
  float x, y;
};
inline float2 make_float2(float x, float y) {
  return {x, y};
}

struct CudaIndex {
  unsigned x, y, z;
};
extern CudaIndex threadIdx, blockIdx;

#define __global__
#define __device__
#define __shared__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)

// Blocks run one after another, and a block's threads on one thread of the CPU.
inline unsigned atomicAdd(unsigned* at, unsigned value) {
  const unsigned before = *at;
  *at += value;
  return before;
}
inline void atomicMin(std::uint32_t* at, std::uint32_t value) {
  if (value < *at) *at = value;
}
inline void atomicMax(std::uint32_t* at, std::uint32_t value) {
  if (value > *at) *at = value;
}
inline float __ldcg(const float* at) {
  return *at;
}
inline void __threadfence() {}

void __syncthreads();
void __syncwarp();

namespace cuda_on_cpu {

enum class CopiesLand { at_once, when_waited_for };
// by_warp: one warp runs as far ahead of the others as it can.
enum class ThreadOrder { forwards, backwards, by_warp };

struct Machine {
  CopiesLand copies = CopiesLand::when_waited_for;
  ThreadOrder order = ThreadOrder::forwards;
};

inline constexpr std::size_t kSharedBytes = 227 * 1024;  // most that a block of sm_90 can have

// False when the block wrote outside its dynamic shared memory, or its threads wait for what never comes.
bool run_grid(const Machine& machine, unsigned blocks, unsigned threads, std::size_t shared_bytes,
              const std::function<void()>& kernel);

// One thread's cp.async, of 4 or 16 bytes.
void copy(void* shared, const void* global, std::size_t bytes);
void commit_copies();
void wait_for_copies(int youngest_left);

// Barriers in shared memory that count arrivals and bytes, and copies that complete on them.
void mbarrier_init(std::uint64_t* barrier, int arrivals);
void mbarrier_arrive(std::uint64_t* barrier, int expected_bytes);
void mbarrier_wait(std::uint64_t* barrier, int parity);
void bulk_copy(void* shared, const void* global, int bytes, std::uint64_t* barrier);

// What each lane of the calling thread's warp brings, in the order of lanes; all lanes call it together.
void warp_gather(const void* mine, std::size_t bytes, void* all);
template <typename T>
std::array<T, 32> warp_gather(const T& mine) {
  std::array<T, 32> all;
  warp_gather(&mine, sizeof mine, all.data());
  return all;
}

}  // namespace cuda_on_cpu
