// Bulk copies that complete on an mbarrier (sm_90 and later): one thread asks for many bytes, the copy engine
// moves them, and whoever waits on the barrier sees them.
//
// An mbarrier counts arrivals and bytes. Its phase ends when as many arrivals as it was made for have come
// and all bytes that were announced have landed; phases alternate between parity 0 and 1, beginning with 0.
#pragma once

#include <cstdint>

namespace gemmhoist::kernels {

using Mbarrier = std::uint64_t;

__device__ inline unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

// By one thread; then mbarrier_fence_init, then a barrier of the block.
__device__ inline void mbarrier_init(Mbarrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
}

// Makes initialised barriers visible to the copy engine.
__device__ inline void mbarrier_fence_init() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void mbarrier_arrive(Mbarrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Arrives, and announces bytes that will land.
__device__ inline void mbarrier_arrive_expecting(Mbarrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}

// Returns when the phase of that parity has ended.
__device__ inline void mbarrier_wait(Mbarrier* barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "$again%=:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra $again%=;\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

// A contiguous run, 16-byte aligned on both sides, its length a multiple of 16.
__device__ inline void bulk_copy(void* shared, const void* global, int bytes, Mbarrier* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

}  // namespace gemmhoist::kernels
