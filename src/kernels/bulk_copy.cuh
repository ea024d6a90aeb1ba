// Bulk copies that complete on an mbarrier (sm_90 and later): one thread asks for many bytes, the copy engine
// moves them, and whoever waits on the barrier sees them. A cluster's blocks run on neighbouring SMs; a copy
// can land in the shared memory of all of them at once, at the same place in each.
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

// Makes initialised barriers visible to the copy engine and to the cluster's other blocks.
__device__ inline void mbarrier_fence_init() {
  asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void mbarrier_arrive(Mbarrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Arrives at the barrier that stands at the same place in another block of the cluster. No ordinary write of
// this thread is made visible there: a release for the cluster would cost a fence.
__device__ inline void mbarrier_arrive_at(Mbarrier* barrier, unsigned rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
}

// Arrives, and announces bytes that will land.
__device__ inline void mbarrier_arrive_expecting(Mbarrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}

// Returns when the phase of that parity has ended. Sees what this block and the copy engine did; a
// neighbour's ordinary writes are not waited for by this (that would cost the L1).
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

// The same into every block of the cluster whose bit is set, each one's own barrier told.
__device__ inline void bulk_copy_to_cluster(void* shared, const void* global, int bytes, Mbarrier* barrier,
                                            std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, "
      "[%3], "
      "%4;" ::"r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier)), "h"(blocks)
      : "memory");
}

__device__ inline unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// All threads of all blocks of the cluster.
__device__ inline void cluster_barrier() {
  __syncwarp();  // a warp comes as one
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Writes into another block's shared memory, at the same place as here.
__device__ inline void store_at(unsigned* shared, unsigned rank, unsigned value) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "st.shared::cluster.u32 [remote], %2;\n"
      "}\n" ::"r"(shared_address(shared)),
      "r"(rank), "r"(value)
      : "memory");
}

}  // namespace gemmhoist::kernels
