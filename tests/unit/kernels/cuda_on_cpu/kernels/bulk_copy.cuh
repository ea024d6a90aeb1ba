// Stands for src/kernels/bulk_copy.cuh, whose PTX a CPU has not.
#pragma once

#include <cstdint>

#include "cuda_on_cpu.hpp"

namespace gemmhoist::kernels {

using Mbarrier = std::uint64_t;

inline void mbarrier_init(Mbarrier* barrier, int arrivals) {
  cuda_on_cpu::mbarrier_init(barrier, arrivals);
}
inline void mbarrier_fence_init() {}
inline void mbarrier_arrive(Mbarrier* barrier) {
  cuda_on_cpu::mbarrier_arrive(barrier, 0);
}
inline void mbarrier_arrive_expecting(Mbarrier* barrier, int bytes) {
  cuda_on_cpu::mbarrier_arrive(barrier, bytes);
}
inline void mbarrier_wait(Mbarrier* barrier, int parity) {
  cuda_on_cpu::mbarrier_wait(barrier, parity);
}
inline void bulk_copy(void* shared, const void* global, int bytes, Mbarrier* barrier) {
  cuda_on_cpu::bulk_copy(shared, global, bytes, barrier);
}

}  // namespace gemmhoist::kernels
