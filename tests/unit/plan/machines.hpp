// Machines and kernel sets that the plan's tests share.
#pragma once

#include "plan/plan.hpp"

namespace gemmhoist::plan::testing {

inline constexpr KernelDescriptor kTransposeKernel{
    "transpose", KernelRole::transpose, Precision::fp32, 75, 32, 32, 1, 1, 256, 4224, 8};
inline constexpr KernelDescriptor kLarge{
    "large", KernelRole::gemm, Precision::fp32, 80, 128, 256, 32, 3, 256, 147456, 1};
inline constexpr KernelDescriptor kMiddle{
    "middle", KernelRole::gemm, Precision::fp32, 80, 128, 128, 16, 3, 256, 49152, 2};
inline constexpr KernelDescriptor kSmall{
    "small", KernelRole::gemm, Precision::fp32, 80, 64, 64, 16, 3, 64, 24576, 4};
inline constexpr KernelDescriptor kReference{
    "reference", KernelRole::gemm, Precision::fp32, 75, 16, 16, 16, 1, 256, 2048, 8};
inline constexpr KernelDescriptor kOdd{
    "odd", KernelRole::gemm, Precision::fp32, 80, 96, 160, 24, 2, 192, 30000, 2};

inline constexpr KernelDescriptor kBf16x6{
    "bf16x6", KernelRole::gemm_prepared, Precision::bf16x6, 90, 128, 128, 32, 4, 384, 196736, 1};
inline constexpr KernelDescriptor kTf32{
    "tf32", KernelRole::gemm_prepared, Precision::tf32, 90, 256, 128, 32, 4, 384, 196736, 1};
inline constexpr KernelDescriptor kPrepareBf16x6{
    "prepare_bf16x6", KernelRole::prepare, Precision::bf16x6, 80, 128, 32, 1, 1, 256, 0, 4};
inline constexpr KernelDescriptor kPrepareTf32{
    "prepare_tf32", KernelRole::prepare, Precision::tf32, 80, 128, 32, 1, 1, 256, 0, 4};
inline constexpr KernelDescriptor kLeftover{
    "leftover", KernelRole::gemm_leftover, Precision::bf16x6, 80, 128, 128, 16, 3, 128, 49152, 2};

inline constexpr KernelDescriptor kUsual[] = {kLarge,           kMiddle,  kSmall, kReference,
                                              kTransposeKernel, kBf16x6,  kTf32,  kPrepareBf16x6,
                                              kPrepareTf32,     kLeftover};

// The model of MEASURED's table of schedules: 50 GB/s each way without latency, 50 TFLOP/s.
inline MachineProfile model_machine(std::int32_t sms = 132) {
  MachineProfile p;
  p.h2d = p.d2h = {0, 50e9};
  p.host_copy_bytes_per_s = 1e15;
  p.kernel_flops_per_s = 50e12;
  p.call_fixed_s = 0;
  p.sm_count = sms;
  p.measured = true;
  return p;
}

inline MachineProfile h200() {
  MachineProfile p = model_machine();
  p.h2d = {2.7e-6, 55e9};
  p.d2h = {1.7e-6, 55e9};
  p.host_copy_bytes_per_s = 100e9;
  p.call_fixed_s = 50e-6;
  p.bf16x6_flops_per_s = 112e12;
  p.tf32_flops_per_s = 360e12;
  return p;
}

inline PlanInput product(std::int64_t m, std::int64_t n, std::int64_t k, const MachineProfile& profile) {
  PlanInput in;
  in.m = m;
  in.n = n;
  in.k = k;
  in.kernels = kUsual;
  in.device_bytes = std::int64_t{140} << 30;
  in.pinned_bytes = std::int64_t{64} << 20;
  in.profile = &profile;
  return in;
}

}  // namespace gemmhoist::plan::testing
