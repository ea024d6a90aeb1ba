// A small product made with nothing but Device's own calls: pinned memory, 2-D copies, a transposition, a
// kernel, the way back; and what it should come to. The pipeline does the same at scale.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "core/checked.hpp"
#include "device/device.hpp"
#include "observe/trace.hpp"

namespace gemmhoist::test {

class DeviceProduct {
 public:
  DeviceProduct(std::int32_t m, std::int32_t n, std::int32_t k) : m_(m), n_(n), k_(k) {
    a_ = random(m, k);
    b_ = random(k, n);
  }

  // C = alpha A B (all column-major, tight) into c(); every step's status is the answer's.
  Status run(device::Device& device, const KernelDescriptor& kernel, const KernelDescriptor& transpose,
             float alpha) {
    const Status status = attempt(device, kernel, transpose, alpha);
    give_back(device);
    return status;
  }

  // The largest error of c() in units of the bound.
  double worst_error(float alpha) const {
    double worst = 0;
    for (std::int64_t j = 0; j < n_; ++j) {
      for (std::int64_t i = 0; i < m_; ++i) {
        double sum = 0, magnitude = 0;
        for (std::int64_t p = 0; p < k_; ++p) {
          const double x = static_cast<double>(a_[i + p * m_]) * static_cast<double>(b_[p + j * k_]);
          sum += x;
          magnitude += std::abs(x);
        }
        const double bound = (k_ + 3) * std::ldexp(1.0, -24) * std::abs(alpha) * magnitude +
                             (k_ + 3) * std::ldexp(1.0, -149) * (1 + std::abs(alpha));
        const double error = std::abs(static_cast<double>(c_[i + j * m_]) - alpha * sum);
        if (!(error / bound <= worst)) worst = error / bound;  // NaN counts as worse
      }
    }
    return worst;
  }

 private:
  using DevicePointer = device::DevicePointer;
  using Stream = device::Stream;
  enum : device::Event { landed, prepared, computed, home };

  static std::vector<float> random(std::int64_t rows, std::int64_t cols) {
    static std::uint64_t state = 88172645463325252ull;
    std::vector<float> values(static_cast<std::size_t>(rows * cols));
    for (float& value : values) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      value = static_cast<float>(static_cast<std::int64_t>(state >> 40) - (1 << 23)) * 0x1p-23f;
    }
    return values;
  }

  Status attempt(device::Device& device, const KernelDescriptor& kernel, const KernelDescriptor& transpose,
                 float alpha) {
    c_.assign(static_cast<std::size_t>(m_) * n_, std::nanf(""));
    constexpr std::int64_t kFloat = sizeof(float);
    const std::int64_t depth = round_up(k_, kernel.tile_k);
    // A kernel may read whole tiles, hence panels as wide as whole tiles.
    const std::int64_t lda = round_up(round_up(m_, kernel.tile_m), kPanelAlignment);
    const std::int64_t ldb = round_up(round_up(n_, kernel.tile_n), kPanelAlignment);
    const std::int64_t ldc = round_up(m_, kPanelAlignment);
    const std::size_t arena_bytes = static_cast<std::size_t>(m_ * k_ + k_ * n_ + m_ * n_) * kFloat;
    arena_.resize(arena_bytes + 4096);
    auto* arena = reinterpret_cast<char*>(round_up(reinterpret_cast<std::intptr_t>(arena_.data()), 4096));
    GEMMHOIST_RETURN_IF_FAILED(device.pin(arena, arena_bytes));
    pinned_ = arena;
    char* pinned_a = arena;
    char* pinned_b = pinned_a + m_ * k_ * kFloat;
    char* pinned_c = pinned_b + k_ * n_ * kFloat;
    std::memcpy(pinned_a, a_.data(), a_.size() * kFloat);
    std::memcpy(pinned_b, b_.data(), b_.size() * kFloat);

    DevicePointer a = 0, b = 0, c = 0, landing = 0;
    GEMMHOIST_RETURN_IF_FAILED(allocate(device, lda * depth * kFloat, a));
    GEMMHOIST_RETURN_IF_FAILED(allocate(device, ldb * depth * kFloat, b));
    GEMMHOIST_RETURN_IF_FAILED(allocate(device, ldc * n_ * kFloat, c));
    GEMMHOIST_RETURN_IF_FAILED(allocate(device, static_cast<std::int64_t>(k_) * n_ * kFloat, landing));

    // Zeros below k, where the kernel reads on to a whole stage; then A, whose columns are rows of the panel.
    const auto bytes = [](std::int64_t elements) { return static_cast<std::size_t>(elements * kFloat); };
    GEMMHOIST_RETURN_IF_FAILED(
        device.fill_zero(Stream::h2d, a, bytes(lda), bytes(lda), static_cast<std::size_t>(depth)));
    GEMMHOIST_RETURN_IF_FAILED(
        device.fill_zero(Stream::h2d, b, bytes(ldb), bytes(ldb - 4), static_cast<std::size_t>(depth)));
    GEMMHOIST_RETURN_IF_FAILED(device.copy_h2d(
        Stream::h2d, {pinned_a, bytes(m_), a, bytes(lda), bytes(m_), static_cast<std::size_t>(k_)}));
    GEMMHOIST_RETURN_IF_FAILED(device.copy_h2d(
        Stream::h2d, {pinned_b, bytes(k_), landing, bytes(k_), bytes(k_), static_cast<std::size_t>(n_)}));
    GEMMHOIST_RETURN_IF_FAILED(device.record(landed, Stream::h2d));

    GEMMHOIST_RETURN_IF_FAILED(device.wait(Stream::prepare, landed));
    GEMMHOIST_RETURN_IF_FAILED(device.launch(
        Stream::prepare, transpose, TransposeKernelParams{as_float(landing), as_float(b), k_, ldb, n_, k_}));
    GEMMHOIST_RETURN_IF_FAILED(device.record(prepared, Stream::prepare));

    GEMMHOIST_RETURN_IF_FAILED(device.wait(Stream::compute1, prepared));
    GEMMHOIST_RETURN_IF_FAILED(
        device.launch(Stream::compute1, kernel,
                      GemmKernelParams{as_float(a), as_float(b), as_float(c), lda, ldb, ldc, m_, n_,
                                       static_cast<std::int32_t>(depth), alpha, 0}));
    GEMMHOIST_RETURN_IF_FAILED(device.record(computed, Stream::compute1));

    GEMMHOIST_RETURN_IF_FAILED(device.wait(Stream::d2h, computed));
    GEMMHOIST_RETURN_IF_FAILED(device.copy_d2h(
        Stream::d2h, {pinned_c, bytes(m_), c, bytes(ldc), bytes(m_), static_cast<std::size_t>(n_)}));
    GEMMHOIST_RETURN_IF_FAILED(device.record(home, Stream::d2h));
    GEMMHOIST_RETURN_IF_FAILED(device.drain(observe::now_ns() + 10'000'000'000));

    device::EventState state = device::EventState::pending;
    GEMMHOIST_RETURN_IF_FAILED(device.query(home, state));
    if (state != device::EventState::reached) return {StatusCode::timed_out, "event after drain"};
    GEMMHOIST_RETURN_IF_FAILED(device.elapsed_seconds(prepared, computed, kernel_seconds_));
    std::memcpy(c_.data(), pinned_c, c_.size() * kFloat);
    return {};
  }

  Status allocate(device::Device& device, std::int64_t bytes, DevicePointer& pointer) {
    const Status status = device.allocate(static_cast<std::size_t>(bytes), pointer);
    if (status.ok()) allocated_.push_back(pointer);
    if (pointer % 256 != 0) return {StatusCode::device_error, "alignment"};
    return status;
  }

  // Whatever could not be given back stays with the device, whose end takes it along.
  void give_back(device::Device& device) {
    static_cast<void>(device.drain(observe::now_ns() + 10'000'000'000));
    for (const DevicePointer pointer : allocated_) static_cast<void>(device.release(pointer));
    allocated_.clear();
    if (pinned_ != nullptr && !device.unpin(pinned_).ok()) static_cast<void>(device.unpin(pinned_));
    pinned_ = nullptr;
  }

  static float* as_float(DevicePointer pointer) { return reinterpret_cast<float*>(pointer); }

  std::int32_t m_, n_, k_;
  std::vector<float> a_, b_, c_;
  std::vector<char> arena_;
  void* pinned_ = nullptr;
  std::vector<DevicePointer> allocated_;
  double kernel_seconds_ = -1;

 public:
  double kernel_seconds() const { return kernel_seconds_; }
};

inline const KernelDescriptor* first_of(const device::Device& device, KernelRole role) {
  for (const KernelDescriptor& kernel : device.kernels()) {
    if (kernel.role == role) return &kernel;
  }
  return nullptr;
}

}  // namespace gemmhoist::test
