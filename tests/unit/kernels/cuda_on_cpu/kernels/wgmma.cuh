// Stands for src/kernels/wgmma.cuh: products of tiles in shared memory, as late as the rules allow. A product
// reads its tiles when its group is waited for, so that a stage given back too early is seen.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "kernels/bulk_copy.cuh"

namespace gemmhoist::kernels {

// As the hardware's, but for the address, which has all its bits.
template <int row_bytes>
inline std::uint64_t wgmma_tile(const void* shared) {
  return reinterpret_cast<std::uintptr_t>(shared) >> 4 | std::uint64_t{row_bytes == 128 ? 1 : 2} << 62;
}

namespace wgmma_on_cpu {

using Group = std::vector<std::function<void()>>;
struct Pending {
  Group open;
  std::deque<Group> groups;
};
inline Pending pending[1024];  // by thread of the block

// The 16 bytes at `byte` of a row stand where the swizzle of the row's length puts them.
template <typename Element>
Element element(std::uint64_t tile, int row, int byte) {
  const bool wide = tile >> 62 == 1;
  const std::uintptr_t row_bytes = wide ? 128 : 64;
  std::uintptr_t address = (tile & ~(std::uint64_t{3} << 62)) << 4;
  address += static_cast<std::uintptr_t>(row) * row_bytes + static_cast<std::uintptr_t>(byte);
  address ^= wide ? (address >> 7 & 7) << 4 : (address >> 7 & 3) << 4;
  Element value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

struct Bf16 {
  static constexpr int kDepth = 16, kBytes = 2;
  static double at(std::uint64_t tile, int row, int k) {
    return std::bit_cast<float>(std::uint32_t{element<std::uint16_t>(tile, row, k * kBytes)} << 16);
  }
};
struct Tf32 {
  static constexpr int kDepth = 8, kBytes = 4;
  static double at(std::uint64_t tile, int row, int k) {
    return std::bit_cast<float>(element<std::uint32_t>(tile, row, k * kBytes) & ~0x1FFFu);
  }
};

template <typename Type, int count>
void multiply(float (&d)[count], std::uint64_t a, std::uint64_t b, bool add) {
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32, warp = thread / 32;
  pending[threadIdx.x].open.push_back([&d, a, b, add, lane, warp] {
    for (int i = 0; i < count; ++i) {
      const int row = warp * 16 + i / 2 % 2 * 8 + lane / 4, col = i / 4 * 8 + lane % 4 * 2 + i % 2;
      double sum = 0;
      for (int k = 0; k < Type::kDepth; ++k) sum += Type::at(a, row, k) * Type::at(b, col, k);
      d[i] = static_cast<float>(add ? d[i] + sum : sum);
    }
  });
}

}  // namespace wgmma_on_cpu

inline void wgmma_fence() {}
inline void wgmma_commit() {
  wgmma_on_cpu::Pending& mine = wgmma_on_cpu::pending[threadIdx.x];
  mine.groups.push_back(std::exchange(mine.open, {}));
}
template <int youngest>
inline void wgmma_wait() {
  wgmma_on_cpu::Pending& mine = wgmma_on_cpu::pending[threadIdx.x];
  while (mine.groups.size() > static_cast<std::size_t>(youngest)) {
    for (const auto& product : mine.groups.front()) product();
    mine.groups.pop_front();
  }
}
template <int n>
inline void wgmma_settle(float (&)[n]) {}
template <int registers>
inline void give_registers_back() {}
template <int registers>
inline void take_registers() {}

inline void wgmma_bf16_128_first(float (&d)[64], std::uint64_t a, std::uint64_t b) {
  wgmma_on_cpu::multiply<wgmma_on_cpu::Bf16>(d, a, b, false);
}
inline void wgmma_bf16_128(float (&d)[64], std::uint64_t a, std::uint64_t b) {
  wgmma_on_cpu::multiply<wgmma_on_cpu::Bf16>(d, a, b, true);
}
inline void wgmma_tf32_256(float (&d)[128], std::uint64_t a, std::uint64_t b) {
  wgmma_on_cpu::multiply<wgmma_on_cpu::Tf32>(d, a, b, true);
}

}  // namespace gemmhoist::kernels
