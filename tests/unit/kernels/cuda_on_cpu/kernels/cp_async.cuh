// Stands for src/kernels/cp_async.cuh, whose PTX a CPU has not.
#pragma once

#include "cuda_on_cpu.hpp"

namespace gemmhoist::kernels {

using SharedAddress = char*;

inline SharedAddress shared_address(void* shared) {
  return static_cast<char*>(shared);
}

alignas(16) inline constexpr float kZeros[4] = {};

inline void cp_async_16(void* shared, const void* global) {
  cuda_on_cpu::copy(shared, global, 16);
}
inline void cp_async_16_or_zero(void* shared, const void* global, bool inside) {
  cuda_on_cpu::copy(shared, inside ? global : kZeros, 16);
}
inline void cp_async_4(void* shared, const void* global) {
  cuda_on_cpu::copy(shared, global, 4);
}
inline void cp_async_4_or_zero(void* shared, const void* global, bool inside) {
  cuda_on_cpu::copy(shared, inside ? global : kZeros, 4);
}
inline void cp_async_commit() {
  cuda_on_cpu::commit_copies();
}
template <int kYoungest>
inline void cp_async_wait() {
  cuda_on_cpu::wait_for_copies(kYoungest);
}

}  // namespace gemmhoist::kernels
