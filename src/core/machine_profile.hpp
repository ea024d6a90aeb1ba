// MachineProfile: what the cost model knows of this machine. Plain values; rates in units a second.
#pragma once

#include <array>
#include <cstdint>

#include "core/kernel_descriptor.hpp"

namespace gemmhoist {

// Host <-> device transfer: seconds(bytes) = latency + bytes / bandwidth, from pinned memory.
struct LinkRate {
  double latency_s = 0;
  double bytes_per_s = 0;
};

// CPU BLAS rate by size: bucket i holds calls with 2^(i+kFirstBucket) <= 2mnk < 2^(i+1+kFirstBucket).
// A second index separates thin products (smallest dimension below 32, below 128, others).
struct CpuRates {
  static constexpr int kFirstBucket = 16;
  static constexpr int kBuckets = 32;
  static constexpr int kThinness = 3;
  std::array<std::array<double, kThinness>, kBuckets> flops_per_s{};  // 0: not learnt yet
};

struct MachineProfile {
  LinkRate h2d{10e-6, 20e9};
  LinkRate d2h{10e-6, 20e9};
  double host_copy_bytes_per_s = 20e9;  // all copy threads together, one direction
  double kernel_flops_per_s = 8e12;     // the large-tile kernel on large products
  double bf16x6_flops_per_s = 0;        // the same of products of images; 0: not measured, hence not planned
  double tf32_flops_per_s = 0;
  double call_fixed_s = 60e-6;  // hand-over to the worker, launches, last event
  double start_s = 0.4;         // context, module, arena
  double end_s = 0.05;          // what having used the GPU adds to the exit of the process
  std::int32_t sm_count = 0;
  std::int32_t host_threads = 1;
  bool measured = false;  // link, copy and kernel figures come from this machine
  CpuRates cpu;
};

// Rate of large products; 0: not known.
constexpr double flops_per_s(const MachineProfile& profile, Precision precision) noexcept {
  switch (precision) {
    case Precision::bf16x6:
      return profile.bf16x6_flops_per_s;
    case Precision::tf32:
      return profile.tf32_flops_per_s;
    case Precision::fp32:
      break;
  }
  return profile.kernel_flops_per_s;
}
constexpr void set_flops_per_s(MachineProfile& profile, Precision precision, double rate) noexcept {
  double& field = precision == Precision::bf16x6 ? profile.bf16x6_flops_per_s
                  : precision == Precision::tf32 ? profile.tf32_flops_per_s
                                                 : profile.kernel_flops_per_s;
  field = rate;
}

}  // namespace gemmhoist
