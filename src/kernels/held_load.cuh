// Loads of shared memory into registers that are held for them.
//
// Left alone, ptxas puts a fragment's loads right before its first use, which saves registers and undoes the
// double buffering: a warp then waits for them in every step of k. So a load is made under a condition that
// always holds, but not to the compiler's knowledge: what was in the registers before may still be wanted,
// they are never free, and nothing is saved by loading late. The condition is a predicate of the load
// itself and costs no instruction.
#pragma once

namespace gemmhoist::kernels {

// Four floats, 16-byte aligned. `always` is not 0.
__device__ __forceinline__ void held_load(float* to, const float* shared, int always) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile(
      "{ .reg .pred wanted; setp.ne.s32 wanted, %5, 0; "
      "@wanted ld.shared.v4.f32 {%0, %1, %2, %3}, [%4]; }"
      : "+f"(to[0]), "+f"(to[1]), "+f"(to[2]), "+f"(to[3])
      : "r"(address), "r"(always)
      : "memory");
}

// An FMA that stays where it stands among the held loads.
__device__ __forceinline__ float fma_in_order(float x, float y, float sum) {
  float result;
  asm volatile("fma.rn.f32 %0, %1, %2, %3;" : "=f"(result) : "f"(x), "f"(y), "f"(sum));
  return result;
}

}  // namespace gemmhoist::kernels
