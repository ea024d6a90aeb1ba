// cp.async: copies of 16 or 4 bytes from global to shared memory that pass no register (sm_80 and later).
//
// A thread's copies are gathered in groups, closed by commit, finished in order. wait<n> returns when all but
// the thread's n youngest groups have landed; the data become visible to the other threads at the next
// barrier.
#pragma once

namespace gemmhoist::kernels {

// A place in shared memory, which only copies use: 32 bits.
using SharedAddress = unsigned;

__device__ inline SharedAddress shared_address(void* shared) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(shared));
}

// 16-byte aligned on both sides. `cg`: through the L2 alone; a panel's rows are used once a block, so that a
// line in L1 would only displace shared memory's own.
__device__ inline void cp_async_16(SharedAddress shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}
__device__ inline void cp_async_16(void* shared, const void* global) {
  cp_async_16(shared_address(shared), global);
}

// The same at an edge: where not `inside`, nothing is read and zeros are written.
__device__ inline void cp_async_16_or_zero(SharedAddress shared, const void* global, bool inside) {
  asm volatile(
      "{ .reg .pred outside; setp.eq.s32 outside, %2, 0; "
      "cp.async.cg.shared.global [%0], [%1], 16, outside; }" ::"r"(shared),
      "l"(global), "r"(static_cast<int>(inside))
      : "memory");
}
__device__ inline void cp_async_16_or_zero(void* shared, const void* global, bool inside) {
  cp_async_16_or_zero(shared_address(shared), global, inside);
}

// 4 bytes, at any alignment that floats have. Only `ca` has copies so short: they pass through the L1.
__device__ inline void cp_async_4(SharedAddress shared, const void* global) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared), "l"(global) : "memory");
}
__device__ inline void cp_async_4_or_zero(SharedAddress shared, const void* global, bool inside) {
  asm volatile(
      "{ .reg .pred outside; setp.eq.s32 outside, %2, 0; "
      "cp.async.ca.shared.global [%0], [%1], 4, outside; }" ::"r"(shared),
      "l"(global), "r"(static_cast<int>(inside))
      : "memory");
}

__device__ inline void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int kYoungest>
__device__ inline void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kYoungest) : "memory");
}

}  // namespace gemmhoist::kernels
