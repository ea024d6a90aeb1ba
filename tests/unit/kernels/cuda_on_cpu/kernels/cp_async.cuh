// Stands for src/kernels/cp_async.cuh, whose PTX a CPU has not.
#pragma once

#include "cuda_on_cpu.hpp"

namespace gemmhoist::kernels {

inline void cp_async_16(void* shared, const void* global) {
  cuda_on_cpu::copy_16(shared, global);
}
inline void cp_async_16_or_zero(void* shared, const void* global, bool inside) {
  alignas(16) static constexpr float kZeros[4] = {};
  cuda_on_cpu::copy_16(shared, inside ? global : kZeros);
}
inline void cp_async_commit() {
  cuda_on_cpu::commit_copies();
}
template <int kYoungest>
inline void cp_async_wait() {
  cuda_on_cpu::wait_for_copies(kYoungest);
}

}  // namespace gemmhoist::kernels
