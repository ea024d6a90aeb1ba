// cp.async: copies of 16 bytes from global to shared memory that pass no register (sm_80 and later).
//
// A thread's copies are gathered in groups, closed by commit, finished in order. wait<n> returns when all but
// the thread's n youngest groups have landed; the data become visible to the other threads at the next
// barrier.
#pragma once

namespace gemmhoist::kernels {

// 16-byte aligned on both sides. `cg`: through the L2 alone; a panel's rows are used once a block, so that a
// line in L1 would only displace shared memory's own.
__device__ inline void cp_async_16(void* shared, const void* global) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global) : "memory");
}

// The same at an edge: where not `inside`, nothing is read and zeros are written.
__device__ inline void cp_async_16_or_zero(void* shared, const void* global, bool inside) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile(
      "{ .reg .pred outside; setp.eq.s32 outside, %2, 0; "
      "cp.async.cg.shared.global [%0], [%1], 16, outside; }" ::"r"(address),
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
